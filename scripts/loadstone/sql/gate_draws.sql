-- A row is one of the percentiles that are `unbounded`, with its replicates: its own, or those of what it is at least.
SELECT unbounded.*, kept.statistic AS kept_as, value, draws, within, n_runs
FROM replicates AS kept
JOIN unbounded USING (app, host, timestamp, variant, rate)
WHERE kept.statistic IN (unbounded.statistic, unbounded.statistic || ' at least') AND draws IS NOT NULL
ORDER BY ALL
