-- Which runs are left out, and why
SELECT
    exclusion_reason,
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    requests,
    expected_requests,
    problems
FROM runs
WHERE excluded
ORDER BY ALL
