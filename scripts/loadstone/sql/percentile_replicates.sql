-- A row is one of the percentiles that are in percentiles_without_interval.sql, with its replicates: its own, or those of what it is at least.
SELECT searched.*, kept.statistic AS kept_as, value, draws, within, n_runs
FROM replicates AS kept
JOIN percentiles_without_interval AS searched USING (app, host, timestamp, variant, rate)
WHERE kept.statistic IN (searched.statistic, searched.statistic || ' at least') AND draws IS NOT NULL
ORDER BY ALL
