-- A row is one percentile of a cell of several runs that has no interval in `cells`: most often, since of runs like these
-- it may fall among requests that timed out.
SELECT app, host, timestamp, variant, rate, statistic
FROM (
    SELECT
        app, host, timestamp, variant, rate,
        unnest(['p50', 'p90', 'p99']) AS statistic,
        unnest([p50_low_ns, p90_low_ns, p99_low_ns]) AS low_ns
    FROM cells
    WHERE stream = 'main' AND n_runs > 1
)
WHERE low_ns IS NULL
ORDER BY ALL
