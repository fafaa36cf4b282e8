-- Which share of requests failed, by class of error
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    error.key AS error_class,
    round(100 * error.value, 3) AS percent
FROM (SELECT *, unnest(map_entries(error_fractions)) AS error FROM cells)
WHERE stream = 'main' AND error.value > 0
ORDER BY error.value DESC, app, host, timestamp, variant, rate, error_class
