-- One row per run (measured requests of page_requests): two histograms of its latency with at most $bins bins each.
-- linear_counts: equal widths from low_ns to p99_ns. n_beyond counts slower requests, which would flatten the rest.
-- log_counts: equal ratios from low_ns to high_ns. Bins are half-open; the last one includes its upper edge.
-- With a coarse resolution, no bin is narrower than its step: widths of linear bins are multiples of it, and p99_ns is
-- the upper edge of the bin with the 99th percentile, which is not part of the last bin.
WITH
latencies AS (
    SELECT rate, variant, variant_dir, run, greatest(latency_ns, 1)::DOUBLE AS latency_ns
    FROM page_requests
),
steps AS (
    SELECT rate, variant, variant_dir, run, CASE WHEN resolution_ns > 1 THEN resolution_ns END AS step_ns
    FROM runs
),
extents AS (
    SELECT
        rate, variant, variant_dir, run, step_ns,
        min(latency_ns) AS low_ns,
        greatest(quantile_cont(latency_ns, 0.99), min(latency_ns) + 1) AS p99_ns,
        greatest(max(latency_ns), min(latency_ns) + coalesce(any_value(step_ns), 1)) AS high_ns,
        floor((quantile_cont(latency_ns, 0.99) - min(latency_ns)) / any_value(step_ns)) + 1 AS n_steps
    FROM latencies
    JOIN steps USING (rate, variant, variant_dir, run)
    GROUP BY rate, variant, variant_dir, run, step_ns
),
shapes AS (
    SELECT
        rate, variant, variant_dir, run, step_ns, low_ns, high_ns,
        coalesce(ceil(n_steps / ceil(n_steps / $bins)), $bins)::INTEGER AS linear_bins,
        coalesce(low_ns + ceil(n_steps / ceil(n_steps / $bins)) * ceil(n_steps / $bins) * step_ns, p99_ns) AS p99_ns,
        coalesce(
            greatest(least(floor(ln(high_ns / low_ns) / ln(1 + step_ns / low_ns) + 1e-9), $bins), 1), $bins
        )::INTEGER AS log_bins
    FROM extents
),
placed AS (
    SELECT
        rate, variant, variant_dir, run, low_ns, p99_ns, high_ns, linear_bins, log_bins,
        CASE WHEN latency_ns < p99_ns OR (step_ns IS NULL AND latency_ns = p99_ns)
            THEN least(floor((latency_ns - low_ns) / (p99_ns - low_ns) * linear_bins + 1e-9), linear_bins - 1)::INTEGER
        END AS linear_bin,
        least(floor(ln(latency_ns / low_ns) / ln(high_ns / low_ns) * log_bins), log_bins - 1)::INTEGER AS log_bin
    FROM latencies
    JOIN shapes USING (rate, variant, variant_dir, run)
),
counted AS (
    SELECT
        rate, variant, variant_dir, run, low_ns, p99_ns, high_ns, linear_bins, log_bins,
        histogram(linear_bin) AS linear_map,
        histogram(log_bin) AS log_map,
        count(*) FILTER (WHERE linear_bin IS NULL) AS n_beyond
    FROM placed
    GROUP BY ALL
)
SELECT
    rate, variant, variant_dir, run, low_ns, p99_ns, high_ns, n_beyond,
    list_transform(range(linear_bins), lambda bin: coalesce(linear_map[bin::INTEGER], 0)) AS linear_counts,
    list_transform(range(log_bins), lambda bin: coalesce(log_map[bin::INTEGER], 0)) AS log_counts
FROM counted
ORDER BY rate, variant, variant_dir, run;
