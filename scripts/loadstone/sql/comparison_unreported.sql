-- One row per run of a comparison (`valid_runs`) without a mean latency reported by the tool.
SELECT *
FROM valid_runs
ANTI JOIN (SELECT * FROM summaries WHERE stream = 'main' AND preferred AND mean_ns IS NOT NULL)
    USING (app, host, timestamp, variant_dir, rate, run)
ORDER BY series, host, timestamp, variant_dir, run
