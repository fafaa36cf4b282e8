-- One row per run (a series of distribution_requests.sql), including excluded runs: figures of its own measured
-- requests.
--
-- Percentiles interpolate linearly between order statistics, as in cells.sql; latencies_ns are those at $shares.
-- least_timeout_ns: latencies from here on are lower bounds, because a request that timed out is among them.
-- known: the number of requests that took less.
WITH least AS (
    SELECT series, min(latency_ns) AS least_timeout_ns
    FROM distribution_requests
    WHERE timed_out
    GROUP BY series
)

SELECT
    series,
    count(*) AS n_requests,
    count(*) FILTER (WHERE timed_out) AS n_timeouts,
    count(*) FILTER (WHERE least_timeout_ns IS NULL OR latency_ns < least_timeout_ns) AS known,
    avg(latency_ns) AS mean_ns,
    quantile_cont(latency_ns, $shares) AS latencies_ns,
    count(*) FILTER (WHERE ok) AS ok_n_requests,
    avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns,
    quantile_cont(latency_ns, $shown) FILTER (WHERE ok) AS ok_percentiles_ns
FROM distribution_requests
LEFT JOIN least USING (series)
GROUP BY series
ORDER BY series;
