-- One row per run with single requests, including excluded runs: its shape with the evidence, from table run_shapes.
SELECT
    run_shapes.rate, run_shapes.variant, run_shapes.variant_dir, run_shapes.run,
    shape, shapes, half_ratio, trend_share, trend_p, change_share, warmup_requests, warmup_s, warmup_share, change_seqs,
    levels_ns,
    period_requests, period_s, period_p, period_share, dip, dip_p,
    runs.resolution_ns, runs.excluded
FROM run_shapes
JOIN runs USING (app, host, timestamp, variant_dir, rate, run)
ORDER BY rate, variant, variant_dir, run;
