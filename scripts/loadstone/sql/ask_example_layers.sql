-- What every layer adds to the one below it
SELECT
    app,
    host,
    comparison,
    timestamps,
    rate,
    below,
    variant,
    statistic,
    round(added_ns / 1e6, 3) AS added_ms,
    round(added_low_ns / 1e6, 3) AS low_ms,
    round(added_high_ns / 1e6, 3) AS high_ms,
    warning
FROM layers
WHERE added_ns IS NOT NULL
ORDER BY ALL
