-- One row per percentile, of $percentiles, that has no interval in `cells` although its cell has several runs: most
-- often because in similar runs it could fall among requests that timed out.
SELECT app, host, timestamp, variant, rate, replace(bound, '_low_ns', '') AS statistic
FROM (FROM cells WHERE stream = 'main' AND n_runs > 1)
UNPIVOT INCLUDE NULLS (low_ns FOR bound IN (COLUMNS('^p\d+_low_ns$')))
WHERE low_ns IS NULL AND statistic IN $percentiles
ORDER BY ALL
