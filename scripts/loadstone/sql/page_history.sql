-- One row per variant, cell, way of measuring, statistic and campaign, in order of time: the figure from table history,
-- and `level_value`, the median of the figures of its level, at which the level is drawn.
SELECT
    app, variant, host, rate, load_model, way, statistic, timestamp, started_at, value, low, high, at_least, n_runs, level, change, differs,
    resolution_ns, note,
    median(value) OVER (PARTITION BY app, variant, host, rate, way, statistic, level) AS level_value
FROM history
ORDER BY app, variant, host, rate, way, statistic, started_at NULLS LAST, timestamp;
