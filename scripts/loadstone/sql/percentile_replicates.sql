-- One row per percentile of percentiles_without_interval.sql, with its replicates or those of its lower bound.
SELECT searched.*, kept.statistic AS kept_as, value, draws, within, n_runs
FROM replicates AS kept
JOIN percentiles_without_interval AS searched USING (app, host, timestamp, variant, rate)
WHERE kept.statistic IN (searched.statistic, searched.statistic || ' at least') AND draws IS NOT NULL
ORDER BY ALL
