-- One row per pool and stream: the requests that counted_requests.sql has counted. A pool has the runs of a cell or, maybe
-- of several campaigns, of a row of comparisons. Figures affected by requests that timed out are lower bounds.
--
-- ok_* are of requests with code 200 (gRPC: 0, WebSocket: 101). Standard deviations have ddof 0. Means, deviations and
-- percentiles of all requests of a pool are of stats/latencies.py.
-- Fractions are failed / all requests per run, then mean and standard deviation over runs; a run without a class of
-- errors counts as 0. Requests whose code the tool does not report are in no fraction, since their outcome is unknown.
-- Sums over runs are in a fixed order, so that the same data give the same figures to the last digit.
WITH run_sums AS (
    SELECT
        pool, stream, series,
        sum(n_told) AS n_told,
        sum(n) AS n,
        sum(total_ns) AS total_ns,
        sum(n) FILTER (WHERE is_ok) AS ok_n,
        sum(total_ns) FILTER (WHERE is_ok) AS ok_total_ns,
        coalesce(sum(n) FILTER (WHERE error_class IS NOT NULL), 0) AS n_failed
    FROM counted_requests
    GROUP BY pool, stream, series
),

-- Sums of more than 2^53 ns (104 days) are no DOUBLE: whole nanoseconds are divided first.
per_run AS (
    SELECT
        pool,
        stream,
        series,
        nullif(n_told, 0) AS n_told,
        total_ns // n + (total_ns % n) / n AS mean_ns,
        ok_total_ns // ok_n + (ok_total_ns % ok_n) / ok_n AS ok_mean_ns,
        n_failed / nullif(n_told, 0) AS error_fraction
    FROM run_sums
),

over_runs AS (
    SELECT
        pool,
        stream,
        count(*) AS n_runs,
        avg(mean_ns ORDER BY series) AS run_mean_ns,
        stddev_pop(mean_ns ORDER BY series) AS run_std_ns,
        avg(ok_mean_ns ORDER BY series) AS ok_run_mean_ns,
        stddev_pop(ok_mean_ns ORDER BY series) AS ok_run_std_ns,
        avg(error_fraction ORDER BY series) AS error_fraction,
        stddev_pop(error_fraction ORDER BY series) AS error_fraction_std
    FROM per_run
    GROUP BY pool, stream
),

pooled AS (
    SELECT
        pool,
        stream,
        sum(n)::BIGINT AS n_requests,
        coalesce(sum(n) FILTER (WHERE is_ok), 0)::BIGINT AS ok_n_requests
    FROM counted_requests
    GROUP BY pool, stream
),

class_counts AS (
    SELECT pool, stream, series, error_class, sum(n) AS failed
    FROM counted_requests
    WHERE error_class IS NOT NULL
    GROUP BY pool, stream, series, error_class
),

class_fractions AS (
    SELECT
        per_run.pool,
        per_run.stream,
        classes.error_class,
        avg(
            coalesce(class_counts.failed, 0) / per_run.n_told ORDER BY series
        ) AS fraction,
        stddev_pop(
            coalesce(class_counts.failed, 0) / per_run.n_told ORDER BY series
        ) AS fraction_std
    FROM per_run
    JOIN (SELECT DISTINCT pool, stream, error_class FROM class_counts) AS classes USING (pool, stream)
    LEFT JOIN class_counts USING (pool, stream, series, error_class)
    GROUP BY per_run.pool, per_run.stream, classes.error_class
),

by_class AS (
    SELECT
        pool,
        stream,
        map(list(error_class ORDER BY error_class), list(fraction ORDER BY error_class)) AS error_fractions,
        map(list(error_class ORDER BY error_class), list(fraction_std ORDER BY error_class)) AS error_fraction_stds
    FROM class_fractions
    GROUP BY pool, stream
)

SELECT
    pool,
    stream,
    n_runs,
    n_requests,
    run_mean_ns,
    run_std_ns,
    ok_n_requests,
    ok_run_mean_ns,
    ok_run_std_ns,
    error_fraction,
    error_fraction_std,
    coalesce(error_fractions, map()) AS error_fractions,
    coalesce(error_fraction_stds, map()) AS error_fraction_stds
FROM pooled
JOIN over_runs USING (pool, stream)
LEFT JOIN by_class USING (pool, stream)
ORDER BY pool, stream
