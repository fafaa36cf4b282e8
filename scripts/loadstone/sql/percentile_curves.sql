-- One row per pool: the percentiles at $shares of the requests (of timed_requests.sql) of all its valid runs.
--
-- Same definitions as in run_figures.sql.
WITH least AS (
    SELECT pool, min(latency_ns) AS least_timeout_ns
    FROM timed_requests
    WHERE timed_out
    GROUP BY pool
)

SELECT
    pool,
    count(DISTINCT series) AS n_runs,
    count(*) AS n_requests,
    count(*) FILTER (WHERE timed_out) AS n_timeouts,
    count(*) FILTER (WHERE least_timeout_ns IS NULL OR latency_ns < least_timeout_ns) AS known,
    quantile_cont(latency_ns, $shares) AS latencies_ns
FROM timed_requests
LEFT JOIN least USING (pool)
GROUP BY pool
ORDER BY pool;
