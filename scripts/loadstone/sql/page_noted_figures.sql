-- One row per figure that people noted of a run that counts (<run>.figures.csv): under what label, of what, as written.
SELECT host, timestamp, rate, variant, variant_dir, run, section AS label, statistic AS what, metric, text
FROM figures
SEMI JOIN (SELECT * FROM runs WHERE NOT excluded) USING (host, timestamp, rate, variant_dir, run)
WHERE source LIKE '%.figures.csv%'
ORDER BY rate, variant, host, timestamp, variant_dir, run
LIMIT $shown;
