-- One row per valid run of the page's campaigns: figures of its own requests, from table run_figures, and how it was
-- measured.
SELECT run_figures.*, runs.load_model, runs.generator
FROM run_figures
JOIN runs USING (app, host, timestamp, variant, rate, variant_dir, run)
WHERE NOT runs.excluded
ORDER BY rate, variant, host, timestamp, variant_dir, run;
