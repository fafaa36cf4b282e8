-- One row per run at one rate ($rate), excluded or not: its figures in the run inspector, from table run_figures, and why
-- it is excluded, if it is. curve_ns: the latencies at $shares of its requests (page_requests), for the chart of the
-- distribution, which has more points than the table's curve.
WITH curves AS (
    SELECT variant, variant_dir, run, quantile_cont(latency_ns, $shares) AS curve_ns
    FROM page_requests
    GROUP BY variant, variant_dir, run
)

SELECT
    variant, variant_dir, run, curve_ns, n_requests, n_timeouts, success, mean_ns, min_ns, min_censored, max_ns,
    COLUMNS('^p\d+_(ns|censored)$'),
    CASE WHEN excluded THEN coalesce(exclusion_reason, 'no reason recorded') END AS exclusion_reason
FROM curves
JOIN (FROM run_figures WHERE rate = $rate) USING (variant, variant_dir, run)
JOIN (SELECT variant, variant_dir, run, excluded, exclusion_reason FROM runs WHERE rate = $rate)
    USING (variant, variant_dir, run)
ORDER BY variant, variant_dir, run;
