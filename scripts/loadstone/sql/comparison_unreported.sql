-- A row is one run of a comparison whose tool's own figures are missing; `valid_runs` names the comparison's runs.
SELECT *
FROM valid_runs
ANTI JOIN (SELECT * FROM summaries WHERE stream = 'main' AND preferred AND mean_ns IS NOT NULL)
    USING (app, host, timestamp, variant_dir, rate, run)
ORDER BY series, host, timestamp, variant_dir, run
