-- A row is one run of a comparison's campaigns, excluded ones too, of variants and loads that nobody asked for as well.
-- `doubts`: what is wrong with the tool's own report of it, by itself or by the requests beside it.
SELECT runs.*, coalesce(reported.problems, []) AS doubts
FROM runs
LEFT JOIN (SELECT * FROM summaries WHERE stream = 'main' AND preferred) AS reported
    USING (app, host, timestamp, variant, rate, variant_dir, run)
ORDER BY rate, variant, host, timestamp, variant_dir, run
