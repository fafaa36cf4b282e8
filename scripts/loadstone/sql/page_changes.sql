-- What changed in some campaigns ($campaigns: app, host and timestamp of each): one row per variant, load and way of
-- measuring that has an earlier figure in the same series of table history. `before` is that figure; the first campaign
-- of a series has no row. Latencies only, of statistic $statistic.
WITH
series AS (
    SELECT
        app, host, timestamp, variant, rate, started_at, value, change,
        lag(value) OVER campaigns AS before,
        lag(timestamp) OVER campaigns AS before_timestamp
    FROM history
    WHERE statistic = $statistic
    WINDOW campaigns AS (PARTITION BY app, host, variant, rate, way ORDER BY started_at NULLS LAST, timestamp)
)
SELECT app, host, timestamp, variant, rate, value, change, before, before_timestamp
FROM series
WHERE before IS NOT NULL AND list_contains($campaigns, [app, host, timestamp])
ORDER BY app, host, timestamp, rate, variant;
