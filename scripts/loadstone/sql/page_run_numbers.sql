-- One row per run with requests in page_requests, excluded or not: its figures in the run inspector, from table
-- run_figures, and why it is excluded, if it is. curve_ns: the latencies at $shares of its requests, for the chart of the
-- distribution, which has more points than the table's curve.
WITH curves AS (
    SELECT rate, variant, variant_dir, run, quantile_cont(latency_ns, $shares) AS curve_ns
    FROM page_requests
    GROUP BY rate, variant, variant_dir, run
)

SELECT
    rate, variant, variant_dir, run, curve_ns, n_requests, n_timeouts, success, mean_ns, min_ns, min_censored, max_ns,
    COLUMNS('^p\d+_(ns|censored)$'),
    CASE WHEN excluded THEN coalesce(exclusion_reason, 'no reason recorded') END AS exclusion_reason
FROM curves
JOIN run_figures USING (rate, variant, variant_dir, run)
JOIN (SELECT rate, variant, variant_dir, run, excluded, exclusion_reason FROM runs)
    USING (rate, variant, variant_dir, run)
ORDER BY rate, variant, variant_dir, run;
