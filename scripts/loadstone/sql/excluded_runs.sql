-- One row per campaign with excluded runs: their number, the number of all runs, and the most frequent reason (the
-- same codes with the same values; of several, the first by their texts).
SELECT
    app,
    host,
    timestamp,
    count(*) FILTER (WHERE excluded) AS n_excluded,
    count(*) AS runs,
    mode(exclusions ORDER BY exclusion_reason) FILTER (WHERE excluded) AS exclusions
FROM runs
GROUP BY app, host, timestamp
HAVING count(*) FILTER (WHERE excluded) > 0
ORDER BY app, host, timestamp
