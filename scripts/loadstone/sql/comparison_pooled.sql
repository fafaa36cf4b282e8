-- A row is one variant at one load of a comparison: the measured requests of the main stream of all its runs, pooled
-- over campaigns. Same definitions as cells.sql.
-- $files holds the requests; `counting` (host, timestamp, variant_dir, run) names the runs.
WITH tested AS (
    SELECT host, timestamp, variant_dir, run, latency_ns, code = 200 AS ok
    FROM read_parquet($files, hive_partitioning = false)
    SEMI JOIN counting USING (host, timestamp, variant_dir, run)
    WHERE phase = 'test' AND stream = 'main'
),

per_run AS (
    SELECT avg(latency_ns) AS mean_ns, avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns
    FROM tested
    GROUP BY host, timestamp, variant_dir, run
),

over_runs AS (
    SELECT
        count(*) AS n_runs,
        avg(mean_ns) AS run_mean_ns,
        stddev_pop(mean_ns) AS run_std_ns,
        avg(ok_mean_ns) AS ok_run_mean_ns,
        stddev_pop(ok_mean_ns) AS ok_run_std_ns
    FROM per_run
),

pooled AS (
    SELECT
        count(*) AS n_requests,
        avg(latency_ns) AS mean_ns,
        stddev_pop(latency_ns) AS std_ns,
        quantile_cont(latency_ns, [0.5, 0.9, 0.95, 0.99, 0.999]) AS percentiles_ns,
        count(*) FILTER (WHERE ok) AS ok_n_requests,
        avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns,
        stddev_pop(latency_ns) FILTER (WHERE ok) AS ok_std_ns,
        quantile_cont(latency_ns, [0.5, 0.9, 0.99]) FILTER (WHERE ok) AS ok_percentiles_ns
    FROM tested
)

SELECT
    n_runs, n_requests, mean_ns, std_ns, run_mean_ns, run_std_ns,
    ok_n_requests, ok_mean_ns, ok_std_ns, ok_run_mean_ns, ok_run_std_ns,
    percentiles_ns[1] AS p50_ns,
    percentiles_ns[2] AS p90_ns,
    percentiles_ns[3] AS p95_ns,
    percentiles_ns[4] AS p99_ns,
    percentiles_ns[5] AS p999_ns,
    ok_percentiles_ns[1] AS ok_p50_ns,
    ok_percentiles_ns[2] AS ok_p90_ns,
    ok_percentiles_ns[3] AS ok_p99_ns
FROM pooled, over_runs
WHERE n_requests > 0
