-- One row per cell's main stream, with how its runs were measured: a single text or number if all valid runs agree,
-- else several, joined by "and". n_late runs were sent late.
--
-- Cells without a row in `cells` have no run with every request. Their figures are those reported by the tools for each
-- run (evidence "reports"). Their mean is the mean of the runs' means, and mean_log_error the standard error of its
-- logarithm over runs. They only have percentiles if there is one run, because percentiles are never averaged. A figure
-- is null if any of several reports does not have it. other_failures: the fraction of requests that failed, except for
-- known timeouts.
WITH measured AS (
    SELECT
        app,
        host,
        timestamp,
        variant,
        rate,
        string_agg(DISTINCT coalesce(load_model, 'unknown'), ' and ' ORDER BY coalesce(load_model, 'unknown')) AS load_model,
        string_agg(DISTINCT coalesce(generator, 'unknown'), ' and ' ORDER BY coalesce(generator, 'unknown')) AS generator,
        coalesce(string_agg(DISTINCT protocol, ' and ' ORDER BY protocol), '') AS protocol,
        string_agg(DISTINCT sent_by, ' and ' ORDER BY sent_by) AS sent_by,
        string_agg(DISTINCT sent_alike, ' and ' ORDER BY sent_alike) AS sent_alike,
        string_agg(DISTINCT replicas::VARCHAR, ' and ' ORDER BY replicas::VARCHAR) AS replicas,
        string_agg(DISTINCT format('{:g}', duration_s), ' and ' ORDER BY format('{:g}', duration_s)) AS duration_s,
        string_agg(DISTINCT format('{:g}', warmup_rate), ' and ' ORDER BY format('{:g}', warmup_rate)) AS warmup_rate,
        first(labels ORDER BY variant_dir, run) AS labels,
        count(*) AS n_valid,
        count(*) FILTER (WHERE limited) AS n_late,
        max(resolution_ns) AS reported_resolution_ns
    FROM runs
    LEFT JOIN (SELECT app, host, timestamp, variant_dir, rate, run, limited FROM sending) AS sent
        USING (app, host, timestamp, variant_dir, rate, run)
    WHERE NOT excluded
    GROUP BY ALL
),

requested AS (
    SELECT
        app, host, timestamp, variant, rate,
        'requests' AS evidence,
        n_runs,
        n_requests,
        resolution_ns,
        COLUMNS('^(mean|p\d+)_(ns|low_ns|high_ns|estimable|censored)$'),
        error_fraction,
        error_fraction_std,
        error_fraction - coalesce(error_fractions['timeout'], 0) AS other_failures
    FROM cells
    WHERE stream = 'main'
),

reported AS (
    SELECT
        app, host, timestamp, variant, rate,
        'reports' AS evidence,
        count(*) AS n_runs,
        CASE WHEN count(summaries.requests) = count(*) THEN sum(summaries.requests)::BIGINT END AS n_requests,
        CASE WHEN count(mean_ns) = count(*) THEN avg(mean_ns) END AS mean_ns,
        CASE WHEN count(mean_ns) = count(*) AND min(mean_ns) > 0 THEN stddev_samp(ln(mean_ns)) / sqrt(count(*)) END AS mean_log_error,
        CASE WHEN count(*) = 1 THEN any_value(COLUMNS('^p\d+_ns$')) END,
        CASE WHEN count(success) = count(*) THEN avg(1 - success) END AS error_fraction,
        CASE WHEN count(success) = count(*) THEN stddev_pop(1 - success) END AS error_fraction_std,
        error_fraction AS other_failures
    FROM summaries
    JOIN (FROM runs WHERE NOT excluded) AS valid_runs USING (app, host, timestamp, variant, variant_dir, rate, run)
    ANTI JOIN requested USING (app, host, timestamp, variant, rate)
    WHERE stream = 'main' AND preferred
    GROUP BY app, host, timestamp, variant, rate
)

SELECT
    measured.* EXCLUDE (n_valid, reported_resolution_ns),
    figures.* EXCLUDE (app, host, timestamp, variant, rate) REPLACE (
        coalesce(resolution_ns, CASE WHEN evidence = 'reports' THEN reported_resolution_ns END, 0) AS resolution_ns
    )
FROM (FROM requested UNION ALL BY NAME FROM reported) AS figures
JOIN measured USING (app, host, timestamp, variant, rate)
WHERE evidence = 'requests' OR n_runs = n_valid
ORDER BY app, host, variant, rate, timestamp
