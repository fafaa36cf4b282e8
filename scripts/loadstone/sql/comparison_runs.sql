-- One row per run of a comparison's campaigns, including excluded runs and variants and loads that are not compared.
-- `doubts`: contradictions within the tool's report of the run, or between the report and the requests.
SELECT runs.*, coalesce(reported.problems, []) AS doubts
FROM runs
LEFT JOIN (SELECT * FROM summaries WHERE stream = 'main' AND preferred) AS reported
    USING (app, host, timestamp, variant, rate, variant_dir, run)
ORDER BY rate, variant, host, timestamp, variant_dir, run
