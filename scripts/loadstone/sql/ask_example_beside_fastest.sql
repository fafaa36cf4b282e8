-- What every variant adds to the fastest one at the same load
SELECT
    app,
    host,
    timestamp,
    rate,
    variant,
    arg_min(variant, p50_ns) OVER at_this_load AS fastest,
    round((p50_ns - min(p50_ns) OVER at_this_load) / 1e6, 3) AS added_p50_ms,
    round((p99_ns - arg_min(p99_ns, p50_ns) OVER at_this_load) / 1e6, 3) AS added_p99_ms
FROM cells
WHERE stream = 'main'
WINDOW at_this_load AS (PARTITION BY app, host, timestamp, rate)
ORDER BY app, host, timestamp, rate, p50_ns, variant
