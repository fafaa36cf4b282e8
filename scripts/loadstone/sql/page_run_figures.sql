-- One row per run that counts, of the campaigns asked about: what its own requests say, as table run_figures holds it,
-- and how it was measured.
SELECT run_figures.*, runs.load_model, runs.generator
FROM run_figures
JOIN runs USING (app, host, timestamp, variant, rate, variant_dir, run)
WHERE NOT runs.excluded
ORDER BY rate, variant, host, timestamp, variant_dir, run;
