-- A row is one of $percentiles of a cell of several runs that has no interval in `cells`: most often, since of runs like
-- these it may fall among requests that timed out.
SELECT app, host, timestamp, variant, rate, replace(bound, '_low_ns', '') AS statistic
FROM (FROM cells WHERE stream = 'main' AND n_runs > 1)
UNPIVOT INCLUDE NULLS (low_ns FOR bound IN (COLUMNS('^p\d+_low_ns$')))
WHERE low_ns IS NULL AND statistic IN $percentiles
ORDER BY ALL
