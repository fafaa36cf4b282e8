-- One row per run: its shape, send lag, figures of its own requests, and whether it is an outlier among the runs of its
-- cell.
-- n_failed of its n_requests failed, including timeouts.
WITH failed AS (
    SELECT app, host, timestamp, rate, variant_dir, run, sum(count)::BIGINT AS n_failed
    FROM error_causes
    WHERE stream = 'main'
    GROUP BY ALL
)

SELECT
    host,
    timestamp,
    rate,
    variant_dir,
    run,
    run_shapes.shape,
    coalesce(run_shapes.shapes, []) AS shapes,
    run_shapes.warmup_share,
    run_shapes.trend_share,
    sending.refused_code,
    sending.refused,
    sending.lag_p99_ns,
    sending.lag_limit_ns,
    sending.judged_by,
    sending.judged_lag_ns,
    sending.limited,
    run_figures.n_requests,
    run_figures.n_timeouts,
    run_figures.mean_ns,
    COLUMNS('^p\d+_(ns|censored)$'),
    coalesce(failed.n_failed, 0) AS n_failed,
    (app, host, timestamp, rate, runs.variant, run) IN (
        SELECT (app, host, timestamp, rate, variant, run) FROM suggestions WHERE kind = 'outlying run'
    ) AS is_outlying
FROM runs
LEFT JOIN run_shapes USING (app, host, timestamp, rate, variant_dir, run)
LEFT JOIN sending USING (app, host, timestamp, rate, variant_dir, run)
LEFT JOIN run_figures USING (app, host, timestamp, rate, variant_dir, run)
LEFT JOIN failed USING (app, host, timestamp, rate, variant_dir, run)
