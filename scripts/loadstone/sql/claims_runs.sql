-- A row is one run: its shape, and how punctually its requests were sent.
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
    sending.refused,
    sending.lag_p99_ns,
    sending.lag_limit_ns,
    sending.limited
FROM runs
LEFT JOIN run_shapes USING (app, host, timestamp, rate, variant_dir, run)
LEFT JOIN sending USING (app, host, timestamp, rate, variant_dir, run)
