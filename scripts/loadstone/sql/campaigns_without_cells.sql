-- A row is one campaign with a cell whose runs count, and of none of which every request is known.
SELECT DISTINCT app, host, timestamp
FROM runs
ANTI JOIN (FROM cells WHERE stream = 'main') AS known USING (app, host, timestamp, variant, rate)
WHERE NOT excluded
