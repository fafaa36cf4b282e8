-- Runs whose latency did not stay level
SELECT
    shape,
    app,
    host,
    timestamp,
    variant,
    rate,
    run
FROM run_shapes
WHERE shape <> 'flat'
ORDER BY ALL
