-- A row is one run (a series of distribution_requests.sql), those that statistics leave out too: what its own measured requests say.
--
-- Percentiles interpolate linearly between order statistics, as in cells.sql; latencies_ns are those at $shares.
-- least_timeout_ns: from here on latencies are least values, for a request that timed out is among them.
-- known: how many requests took less than that.
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
