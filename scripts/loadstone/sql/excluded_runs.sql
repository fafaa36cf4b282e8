-- One row per campaign with excluded runs: their number, the number of all runs, and the most frequent reason.
SELECT
    app,
    host,
    timestamp,
    count(*) FILTER (WHERE excluded) AS n_excluded,
    count(*) AS runs,
    mode(exclusion_reason ORDER BY exclusion_reason) FILTER (WHERE excluded) AS reason
FROM runs
GROUP BY app, host, timestamp
HAVING count(*) FILTER (WHERE excluded) > 0
ORDER BY app, host, timestamp
