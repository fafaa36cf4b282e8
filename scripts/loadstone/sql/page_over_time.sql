-- One row per rate, variant, phase and time bin (from page_requests): median and 90th percentile of the latency
-- of all requests that valid runs sent in that bin.
-- Bins of a rate have the smallest round width with at most $bins bins and, on average, at least $per_bin requests per
-- bin and variant.
WITH
counted AS (
    SELECT rate, variant, phase, latency_ns, since_start_ns FROM page_requests WHERE NOT excluded
),
extent AS (
    SELECT
        rate,
        greatest(max(since_start_ns) - min(since_start_ns), 1) AS span_ns,
        greatest(count(*) / count(DISTINCT variant), 1) AS per_variant,
        max(since_start_ns) IS NOT NULL AS has_times
    FROM counted
    GROUP BY rate
),
width AS (
    SELECT
        rate, has_times,
        coalesce(
            min(width_ns) FILTER (WHERE span_ns / width_ns <= $bins AND per_variant * width_ns / span_ns >= $per_bin),
            86400000000000
        ) AS width_ns
    FROM extent, (
        SELECT unnest([
            10000000, 20000000, 50000000, 100000000, 200000000, 500000000, 1000000000, 2000000000, 5000000000,
            10000000000, 20000000000, 30000000000, 60000000000, 120000000000, 300000000000, 600000000000,
            1200000000000, 1800000000000, 3600000000000, 7200000000000, 21600000000000
        ]) AS width_ns
    )
    GROUP BY rate, has_times
)
SELECT
    rate, variant, phase,
    floor(since_start_ns / width_ns) * width_ns / 1e9 AS bin_start_s,
    any_value(width_ns) / 1e9 AS bin_width_s,
    count(*) AS n_requests,
    quantile_cont(latency_ns, 0.5) AS p50_ns,
    quantile_cont(latency_ns, 0.9) AS p90_ns
FROM counted
JOIN width USING (rate)
-- Omit requests without times (the clock was set back), unless no request of the rate has times.
WHERE since_start_ns IS NOT NULL OR NOT has_times
GROUP BY rate, variant, phase, bin_start_s
ORDER BY rate, variant, bin_start_s, phase;
