-- One row per annotated figure of a valid run (<run>.figures.csv): its label, what it describes, and its text.
SELECT host, timestamp, rate, variant, variant_dir, run, section AS label, statistic AS what, metric, text
FROM figures
SEMI JOIN (SELECT * FROM runs WHERE NOT excluded) USING (host, timestamp, rate, variant_dir, run)
WHERE source LIKE '%.figures.csv%'
ORDER BY rate, variant, host, timestamp, variant_dir, run
LIMIT $shown;
