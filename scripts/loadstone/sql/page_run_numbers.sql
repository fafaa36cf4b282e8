-- One row per run (measured requests of page_requests): the figures in the run inspector, percentiles_ns (at
-- $percentiles) and latencies_ns (at $shares, for the chart of the distribution), and why the run is excluded, if it is.
-- known: the number of requests that took less than any that timed out; latencies from there on are lower bounds.
WITH least AS (
    SELECT rate, variant, variant_dir, run, min(latency_ns) AS least_timeout_ns
    FROM page_requests
    WHERE measured AND timed_out
    GROUP BY ALL
)

SELECT
    rate, variant, variant_dir, run,
    count(*) AS n_requests,
    count(*) FILTER (WHERE timed_out) AS n_timeouts,
    count(*) FILTER (WHERE least_timeout_ns IS NULL OR latency_ns < least_timeout_ns) AS known,
    count(*) FILTER (WHERE has_code AND NOT failed) / nullif(count(*) FILTER (WHERE has_code), 0) AS success,
    avg(latency_ns) AS mean_ns,
    min(latency_ns) AS min_ns,
    quantile_cont(latency_ns, $percentiles) AS percentiles_ns,
    max(latency_ns) AS max_ns,
    quantile_cont(latency_ns, $shares) AS latencies_ns,
    any_value(exclusion_reason) AS exclusion_reason
FROM page_requests
LEFT JOIN least USING (rate, variant, variant_dir, run)
JOIN (
    SELECT rate, variant, variant_dir, run, CASE WHEN excluded THEN coalesce(exclusion_reason, 'no reason recorded') END AS exclusion_reason
    FROM runs
) USING (rate, variant, variant_dir, run)
WHERE measured
GROUP BY rate, variant, variant_dir, run
ORDER BY rate, variant, variant_dir, run;
