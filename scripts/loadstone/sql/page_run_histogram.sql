-- One row per run at one rate (from page_requests, test phase): two histograms of its latency in $bins bins each.
-- linear_counts: equal widths from low_ns to p99_ns (what is slower is counted in n_beyond, or it would flatten the rest).
-- log_counts: equal ratios from low_ns to high_ns. Bins are half-open; the last one holds its upper edge too.
WITH
measured AS (
    SELECT variant, variant_dir, run, greatest(latency_ns, 1)::DOUBLE AS latency_ns
    FROM page_requests
    WHERE phase = 'test'
),
extents AS (
    SELECT
        variant, variant_dir, run,
        min(latency_ns) AS low_ns,
        greatest(quantile_cont(latency_ns, 0.99), min(latency_ns) + 1) AS p99_ns,
        greatest(max(latency_ns), min(latency_ns) + 1) AS high_ns
    FROM measured
    GROUP BY ALL
),
placed AS (
    SELECT
        variant, variant_dir, run, low_ns, p99_ns, high_ns,
        CASE WHEN latency_ns <= p99_ns
            THEN least(floor((latency_ns - low_ns) / (p99_ns - low_ns) * $bins), $bins - 1)::INTEGER
        END AS linear_bin,
        least(floor(ln(latency_ns / low_ns) / ln(high_ns / low_ns) * $bins), $bins - 1)::INTEGER AS log_bin
    FROM measured
    JOIN extents USING (variant, variant_dir, run)
),
counted AS (
    SELECT
        variant, variant_dir, run,
        any_value(low_ns) AS low_ns, any_value(p99_ns) AS p99_ns, any_value(high_ns) AS high_ns,
        histogram(linear_bin) AS linear_map,
        histogram(log_bin) AS log_map,
        count(*) FILTER (WHERE linear_bin IS NULL) AS n_beyond
    FROM placed
    GROUP BY variant, variant_dir, run
)
SELECT
    variant, variant_dir, run, low_ns, p99_ns, high_ns, n_beyond,
    list_transform(range($bins), lambda bin: coalesce(linear_map[bin::INTEGER], 0)) AS linear_counts,
    list_transform(range($bins), lambda bin: coalesce(log_map[bin::INTEGER], 0)) AS log_counts
FROM counted
ORDER BY variant, variant_dir, run;
