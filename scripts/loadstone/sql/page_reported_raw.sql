-- One row per run with single requests by a tool other than vegeta and serial, and per scope: `measured`, the requests
-- of the measured phase, from table run_figures, and `all`, those of every phase (of measured_requests.sql, in $files),
-- if there are other phases. Main stream; percentiles are as there.
WITH
foreign_runs AS (
    SELECT app, host, timestamp, rate, variant_dir, run
    FROM runs
    WHERE evidence = 'raw' AND coalesce(generator, '') NOT IN ('vegeta', 'serial')
),
every_phase AS (
    SELECT
        app, host, timestamp, rate, variant_dir, run,
        list_sort(list(DISTINCT phase)) AS phases,
        count(*) AS requests,
        count(code) FILTER (WHERE error_class IS NULL) / nullif(count(code), 0) AS success,
        avg(latency_ns) AS mean_ns,
        min(latency_ns) AS min_ns,
        max(latency_ns) AS max_ns,
        quantile_cont(latency_ns, [0.5, 0.75, 0.9, 0.95, 0.99, 0.999]) AS percentiles_ns
    FROM measured_requests($files, every_phase := true, with_excluded := true)
    SEMI JOIN foreign_runs USING (app, host, timestamp, rate, variant_dir, run)
    WHERE stream = 'main'
    GROUP BY ALL
    HAVING len(phases) > 1
)
SELECT
    host, timestamp, rate, variant_dir, run,
    'measured' AS scope,
    ['test'] AS phases,
    n_requests AS requests, success, mean_ns, min_ns, p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns
FROM run_figures
SEMI JOIN foreign_runs USING (app, host, timestamp, rate, variant_dir, run)
UNION ALL BY NAME
SELECT
    * EXCLUDE (app, percentiles_ns),
    'all' AS scope,
    percentiles_ns[1] AS p50_ns,
    percentiles_ns[2] AS p75_ns,
    percentiles_ns[3] AS p90_ns,
    percentiles_ns[4] AS p95_ns,
    percentiles_ns[5] AS p99_ns,
    percentiles_ns[6] AS p999_ns
FROM every_phase
ORDER BY host, timestamp, rate, variant_dir, run, scope DESC;
