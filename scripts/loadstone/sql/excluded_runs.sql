-- One row per campaign with excluded runs: their number, the number of all runs, and the most frequent reason (the
-- same codes with the same values; of several, the first by their texts) with the number of runs that have it.
WITH reasons AS (
    SELECT app, host, timestamp, exclusions, min(exclusion_reason) AS text, count(*) AS n
    FROM runs
    WHERE excluded
    GROUP BY app, host, timestamp, exclusions
),

totals AS (
    SELECT app, host, timestamp, count(*) AS runs
    FROM runs
    GROUP BY app, host, timestamp
)

SELECT
    app,
    host,
    timestamp,
    sum(n)::BIGINT AS n_excluded,
    any_value(runs) AS runs,
    first(exclusions ORDER BY n DESC, text) AS exclusions,
    max(n) AS n_alike
FROM reasons
JOIN totals USING (app, host, timestamp)
GROUP BY app, host, timestamp
ORDER BY app, host, timestamp
