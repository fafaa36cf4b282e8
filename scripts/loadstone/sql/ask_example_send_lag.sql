-- How late the load generator sent
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    round(send_lag_p99_ns / 1e6, 3) AS send_lag_p99_ms,
    generator
FROM runs
WHERE send_lag_p99_ns IS NOT NULL
ORDER BY send_lag_p99_ns DESC, app, host, timestamp, variant, rate, run
LIMIT 50
