-- One row per run of a page with single requests, left-out runs too: its shape with the evidence, as table run_shapes has it.
SELECT
    run_shapes.rate, run_shapes.variant, run_shapes.variant_dir, run_shapes.run,
    shape, shapes, half_ratio, trend_share, trend_p, change_share, warmup_requests, warmup_s, warmup_share, change_seqs,
    levels_ns,
    period_requests, period_s, period_p, period_share, dip, dip_p,
    runs.resolution_ns, runs.excluded
FROM run_shapes
JOIN runs USING (app, host, timestamp, variant_dir, rate, run)
ORDER BY rate, variant, variant_dir, run;
