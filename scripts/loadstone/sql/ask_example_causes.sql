-- Why requests failed, and on which side
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    side,
    cause,
    code,
    sum(count) AS n_requests,
    min(error) AS for_example
FROM error_causes
JOIN (SELECT app, host, timestamp, variant_dir, rate, run FROM runs WHERE NOT excluded)
    USING (app, host, timestamp, variant_dir, rate, run)
GROUP BY app, host, timestamp, variant, rate, side, cause, code
ORDER BY n_requests DESC, app, host, timestamp, variant, rate, side, cause, code
