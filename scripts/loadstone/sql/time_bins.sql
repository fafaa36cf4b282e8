-- One row per pool, phase and time bin: the requests (of timed_requests.sql) that all valid runs of the pool sent in it. Times are since each run's first measured request; warm-ups have bins before 0 s.
--
-- Bins of a chart have the smallest round width with at most $bins bins up to the last request and, on average, at least
-- $per_bin requests per bin and variant. Requests sent less than half a bin after the last complete bin belong to it.
-- Percentiles (at $shares) are as in cells.sql, never averages over runs.
-- known: the number of requests with a smaller latency than any that timed out.
WITH dated AS (
    SELECT * FROM timed_requests WHERE since_ns IS NOT NULL
),

extent AS (
    SELECT
        chart,
        greatest(max(since_ns), 1) AS end_ns,
        end_ns - least(min(since_ns), 0) AS span_ns,
        count(*) / count(DISTINCT variant) AS per_variant
    FROM dated
    GROUP BY chart
),

width AS (
    SELECT
        chart,
        coalesce(min(width_ns), 86400000000000) AS width_ns,
        greatest(round(any_value(end_ns) / coalesce(min(width_ns), 86400000000000)), 1)::BIGINT - 1 AS last_bin
    FROM extent
    LEFT JOIN (
        SELECT unnest([
            1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000, 200000000, 250000000, 500000000,
            1000000000, 2000000000, 2500000000, 5000000000, 10000000000, 20000000000, 30000000000, 60000000000,
            120000000000, 300000000000, 600000000000, 1200000000000, 1800000000000, 3600000000000, 7200000000000,
            21600000000000
        ]) AS width_ns
    ) AS ladder ON round(span_ns / width_ns) <= $bins AND per_variant * width_ns / span_ns >= $per_bin
    GROUP BY chart
),

binned AS (
    SELECT
        pool, rate, variant, phase, least(floor(since_ns / width_ns), last_bin)::INTEGER AS bin, width_ns, series, latency_ns,
        timed_out
    FROM dated
    JOIN width USING (chart)
),

least AS (
    SELECT pool, phase, bin, min(latency_ns) AS least_timeout_ns
    FROM binned
    WHERE timed_out
    GROUP BY ALL
)

SELECT
    pool,
    any_value(rate) AS rate,
    any_value(variant) AS variant,
    phase,
    bin::BIGINT * any_value(width_ns) / 1e9 AS from_s,
    (bin::BIGINT + 1) * any_value(width_ns) / 1e9 AS to_s,
    count(DISTINCT series) AS n_runs,
    count(*) AS n_requests,
    count(*) FILTER (WHERE timed_out) AS n_timeouts,
    count(*) FILTER (WHERE least_timeout_ns IS NULL OR latency_ns < least_timeout_ns) AS known,
    avg(latency_ns) AS mean_ns,
    quantile_cont(latency_ns, $shares) AS percentiles_ns
FROM binned
LEFT JOIN least USING (pool, phase, bin)
GROUP BY pool, phase, bin
ORDER BY pool, bin, phase;
