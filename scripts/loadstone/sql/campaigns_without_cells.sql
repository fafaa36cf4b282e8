-- One row per campaign with a cell that has valid runs, but none with every request.
SELECT DISTINCT app, host, timestamp
FROM runs
ANTI JOIN (FROM cells WHERE stream = 'main') AS known USING (app, host, timestamp, variant, rate)
WHERE NOT excluded
