-- A row is one run and kind of error that Artillery counted: requests without an answer are in its counts alone.
--
-- `figures` are those of a campaign's runs; `patterns` is as in error_causes.sql. The text is the name that Artillery
-- counts (ECONNREFUSED); counts are of the whole report, so of every phase of a run. At most $most rows per run.
WITH counted AS (
    SELECT
        *,
        if(metric = 'errors', statistic, substr(metric, 8)) AS said,
        row_number() OVER (PARTITION BY variant_dir, rate, run ORDER BY value DESC, metric, statistic) AS position
    FROM figures
    WHERE
        section = ''
        AND value BETWEEN 1 AND 1e15
        AND (metric = 'errors' OR metric LIKE 'errors.%')
        AND source LIKE '%artillery.json%'
)

SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    variant_dir,
    'main' AS stream,
    arg_min(cause, rank) AS cause,
    arg_min(side, rank) AS side,
    0 AS code,
    left(said, 200) AS error,
    any_value(value)::BIGINT AS count,
    1 AS n_texts
FROM counted
JOIN patterns
    ON patterns.from_code = 0
    AND said LIKE patterns.text
WHERE position <= $most
GROUP BY app, host, timestamp, variant, rate, run, variant_dir, said, position
ORDER BY ALL
