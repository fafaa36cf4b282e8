-- At which rate every variant saturates
SELECT
    app,
    host,
    comparison,
    timestamps,
    variant,
    knee_rate,
    low,
    high,
    "by" AS seen_in,
    problem
FROM knees
ORDER BY ALL
