-- One row per cell (rate, variant) with runs that count: how late the load generator sent its requests.
-- lag_p99_ns is the median over runs of each run's 99th percentile of send lag (runs.send_lag_p99_ns), worst_lag_p99_ns
-- and worst_run are of the run with the longest. n_late runs have one above $least_ns and above $share of the cell's
-- 99th percentile of latency. n_unreported runs have no report of the generator's own.
SELECT
    rate,
    variant,
    count(*) AS n_runs,
    count(send_lag_p99_ns) AS n_measured,
    median(send_lag_p99_ns) AS lag_p99_ns,
    max(send_lag_p99_ns) AS worst_lag_p99_ns,
    arg_max(run, send_lag_p99_ns) AS worst_run,
    count(*) FILTER (WHERE send_lag_p99_ns > greatest($least_ns, $share * p99_ns)) AS n_late,
    count(*) FILTER (WHERE reported IS NULL) AS n_unreported
FROM runs
LEFT JOIN (SELECT rate, variant, p99_ns FROM cells WHERE stream = 'main') USING (rate, variant)
LEFT JOIN (SELECT DISTINCT rate, variant_dir, run, TRUE AS reported FROM summaries WHERE stream = 'main')
    USING (rate, variant_dir, run)
WHERE NOT excluded AND evidence <> 'summary'
GROUP BY rate, variant
ORDER BY rate, variant;
