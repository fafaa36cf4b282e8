-- Spread between runs of the same cell
-- (standard deviation of the runs' means)
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    n_runs,
    round(run_mean_ns / 1e6, 3) AS mean_ms,
    round(100 * run_std_ns / run_mean_ns, 1) AS spread_percent
FROM cells
WHERE stream = 'main' AND n_runs > 1
ORDER BY run_std_ns / run_mean_ns DESC, app, host, timestamp, variant, rate
