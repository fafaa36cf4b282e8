-- A row is one variant at one load of a comparison: the measured requests of the main stream of all its runs, pooled
-- over campaigns. Same definitions as cells.sql.
-- $files holds the requests; `included` (host, timestamp, variant_dir, run, timeout_ns) names the runs.
WITH tested AS (
    SELECT
        host, timestamp, variant_dir, run, code = 200 AS ok,
        if(error_class = 'timeout', greatest(latency_ns, coalesce(timeout_ns, 0)), latency_ns) AS latency_ns
    FROM read_parquet($files, hive_partitioning = false)
    JOIN included USING (host, timestamp, variant_dir, run)
    WHERE phase = 'test' AND stream = 'main'
),

per_run AS (
    SELECT
        host, timestamp, variant_dir, run,
        avg(latency_ns) AS mean_ns,
        avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns
    FROM tested
    GROUP BY host, timestamp, variant_dir, run
),

over_runs AS (
    SELECT
        count(*) AS n_runs,
        avg(mean_ns ORDER BY host, timestamp, variant_dir, run) AS run_mean_ns,
        stddev_pop(mean_ns ORDER BY host, timestamp, variant_dir, run) AS run_std_ns,
        avg(ok_mean_ns ORDER BY host, timestamp, variant_dir, run) AS ok_run_mean_ns,
        stddev_pop(ok_mean_ns ORDER BY host, timestamp, variant_dir, run) AS ok_run_std_ns
    FROM per_run
),

-- Squares of whole numbers add up exactly, in whatever order threads come to them; in halves, which can't overflow.
middles AS (
    SELECT ok IS TRUE AS is_ok, (sum(latency_ns) // count(*))::BIGINT AS middle_ns
    FROM tested
    GROUP BY ALL
),

distances AS (
    SELECT
        is_ok, middle_ns,
        latency_ns::HUGEINT - middle_ns AS signed_ns,
        abs(signed_ns) // 4294967296 AS high,
        abs(signed_ns) % 4294967296 AS low
    FROM (SELECT *, ok IS TRUE AS is_ok FROM tested)
    JOIN middles USING (is_ok)
),

halves AS (
    SELECT
        is_ok,
        count(*) AS n,
        sum(signed_ns)::DOUBLE / n AS off_ns,
        any_value(middle_ns) + off_ns AS mean_ns,
        (sum(high * high) * 18446744073709551616.0::DOUBLE + sum(high * low) * 8589934592.0::DOUBLE + sum(low * low)) / n AS square,
        greatest(square - off_ns * off_ns, 0) AS variance
    FROM distances
    GROUP BY is_ok
),

deviations AS (
    SELECT
        sum(n * mean_ns ORDER BY is_ok) / sum(n) AS centre_ns,
        list(struct_pack(n, mean_ns, variance) ORDER BY is_ok) AS parts,
        sqrt(
            list_sum([part.n * (part.variance + (part.mean_ns - centre_ns) * (part.mean_ns - centre_ns)) FOR part IN parts])
            / sum(n)
        ) AS std_ns,
        sqrt(max(variance) FILTER (WHERE is_ok)) AS ok_std_ns
    FROM halves
),

pooled AS (
    SELECT
        count(*) AS n_requests,
        avg(latency_ns) AS mean_ns,
        quantile_cont(latency_ns, [0.5, 0.9, 0.95, 0.99, 0.999]) AS percentiles_ns,
        count(*) FILTER (WHERE ok) AS ok_n_requests,
        avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns,
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
FROM pooled, over_runs, deviations
WHERE n_requests > 0
