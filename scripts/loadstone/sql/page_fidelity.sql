-- One row per cell (rate, variant) with valid runs: how late the load generator sent requests, from table sending.
-- lag_p99_ns is the median over runs of the 99th percentile of the send lag; worst_lag_p99_ns and worst_run are of the
-- run with the largest. n_late runs are limited by their generator (sending.limited); `latest` is the one of them with
-- the largest lag, by the percentile that it is judged by. n_unreported runs have no report by the load generator.
SELECT
    rate,
    runs.variant,
    count(*) AS n_runs,
    count(lag_p99_ns) AS n_measured,
    median(lag_p99_ns) AS lag_p99_ns,
    max(lag_p99_ns) AS worst_lag_p99_ns,
    first(run ORDER BY lag_p99_ns DESC, runs.variant_dir, run) FILTER (WHERE lag_p99_ns IS NOT NULL) AS worst_run,
    count(*) FILTER (WHERE limited) AS n_late,
    first(
        {'run': run, 'by': judged_by, 'lag_ns': judged_lag_ns, 'limit_ns': lag_limit_ns}
        ORDER BY judged_lag_ns DESC, runs.variant_dir, run
    ) FILTER (WHERE limited) AS latest,
    count(*) FILTER (WHERE reported IS NULL) AS n_unreported
FROM runs
LEFT JOIN sending USING (app, host, timestamp, variant_dir, rate, run)
LEFT JOIN (SELECT DISTINCT rate, variant_dir, run, TRUE AS reported FROM summaries WHERE stream = 'main')
    USING (rate, variant_dir, run)
WHERE NOT runs.excluded AND runs.evidence = 'raw'
GROUP BY rate, runs.variant
ORDER BY rate, runs.variant;
