-- One row per run with single requests by a tool other than vegeta and serial, and per scope: ``measured``, the
-- requests of the measured phase, and ``all``, those of every phase, if there are other phases. Main stream, requests
-- as in measured_requests.sql.
-- Percentiles interpolate, unless latencies are multiples of $coarse_ns or more, between which no value exists: then a
-- percentile is the smallest latency that at least this share of requests did not exceed.
WITH
foreign_runs AS (
    SELECT app, host, timestamp, rate, variant_dir, run, resolution_ns
    FROM runs
    WHERE evidence = 'raw' AND coalesce(generator, '') NOT IN ('vegeta', 'serial')
),
chosen AS (
    SELECT host, timestamp, rate, variant_dir, run, phase, measured, latency_ns, code, resolution_ns >= $coarse_ns AS coarse
    FROM sent_requests($files)
    JOIN foreign_runs USING (app, host, timestamp, rate, variant_dir, run)
    WHERE stream = 'main'
),
scoped AS (
    SELECT *, 'measured' AS scope FROM chosen WHERE measured
    UNION ALL
    SELECT *, 'all' AS scope FROM chosen
),
counted AS (
    SELECT
        host, timestamp, rate, variant_dir, run, scope,
        list_sort(list(DISTINCT phase)) AS phases,
        count(*) AS requests,
        count(*) FILTER (WHERE code >= 200 AND code < 400) / nullif(count(code), 0) AS success,
        avg(latency_ns) AS mean_ns,
        min(latency_ns) AS min_ns,
        max(latency_ns) AS max_ns,
        CASE
            WHEN any_value(coarse) THEN quantile_disc(latency_ns, [0.5, 0.75, 0.9, 0.95, 0.99, 0.999])::DOUBLE[]
            ELSE quantile_cont(latency_ns, [0.5, 0.75, 0.9, 0.95, 0.99, 0.999])
        END AS percentiles_ns
    FROM scoped
    GROUP BY ALL
)
SELECT
    * EXCLUDE (percentiles_ns),
    percentiles_ns[1] AS p50_ns,
    percentiles_ns[2] AS p75_ns,
    percentiles_ns[3] AS p90_ns,
    percentiles_ns[4] AS p95_ns,
    percentiles_ns[5] AS p99_ns,
    percentiles_ns[6] AS p999_ns
FROM counted
WHERE scope = 'measured' OR len(phases) > 1
ORDER BY host, timestamp, rate, variant_dir, run, scope DESC;
