-- One row per run with measured requests at some rates ($rates), excluded or not: its figures in the run inspector, from
-- table run_figures, and why it is excluded, if it is. `series` is its number in selected_runs.sql. Runs of the same number
-- in two folders of a rate are left out, since their requests can't be told apart.
SELECT
    series, rate, variant, variant_dir, run, n_requests, n_timeouts, success, mean_ns, min_ns, min_censored, max_ns,
    COLUMNS('^p\d+_(ns|censored)$'), resolution_ns, excluded, clock_set_back_s,
    CASE WHEN excluded THEN coalesce(exclusion_reason, 'no reason recorded') END AS exclusion_reason
FROM run_figures
JOIN (
    SELECT host, timestamp, rate, variant_dir, run, resolution_ns, clock_set_back_s, exclusion_reason
    FROM runs
    QUALIFY count(*) OVER (PARTITION BY host, timestamp, rate, variant_dir, run) = 1
) USING (host, timestamp, rate, variant_dir, run)
JOIN selected_runs USING (host, timestamp, rate, variant_dir, run)
WHERE rate IN (SELECT unnest($rates))
ORDER BY rate, variant, variant_dir, run;
