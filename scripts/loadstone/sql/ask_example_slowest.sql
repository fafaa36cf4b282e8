-- The slowest cells
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    round(p50_ns / 1e6, 3) AS p50_ms,
    round(p99_ns / 1e6, 3) AS p99_ms,
    round(100 * error_fraction, 2) AS failed_percent
FROM cells
WHERE stream = 'main'
ORDER BY p50_ns DESC NULLS LAST, app, host, timestamp, variant, rate
LIMIT 20
