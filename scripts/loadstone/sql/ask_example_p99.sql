-- p99 of every variant and load of the newest campaign
SELECT
    rate,
    variant,
    n_runs,
    round(p99_ns / 1e6, 3) AS p99_ms,
    round(p99_low_ns / 1e6, 3) AS low_ms,
    round(p99_high_ns / 1e6, 3) AS high_ms,
    p99_estimable AS enough_requests
FROM cells
SEMI JOIN (
    FROM runs
    ORDER BY started_at DESC NULLS LAST, timestamp DESC, app, host
    LIMIT 1
) AS newest USING (app, host, timestamp)
WHERE stream = 'main'
ORDER BY rate, p99_ns, variant
