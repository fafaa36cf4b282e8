-- One row per run and kind of error that is only known from a report: an error that Artillery counts by name
-- (ECONNREFUSED), because requests without a response are only in its counts; or, for runs without requests, a status
-- code in any report.
--
-- `figures` and `summaries` are those of a campaign's runs, `facts` has which of them have requests; `patterns` is as
-- in error_causes.sql. Counts are of the entire report, including all phases of a run. At most $most names per run.
-- Codes have no message (n_texts 0), and it is unknown whether a proxy answered.
WITH counted AS (
    SELECT
        *,
        if(metric = 'errors', statistic, substr(metric, 8)) AS message,
        row_number() OVER (PARTITION BY variant_dir, rate, run ORDER BY value DESC, metric, statistic) AS position
    FROM figures
    WHERE
        section = ''
        AND value BETWEEN 1 AND 1e15
        AND (metric = 'errors' OR metric LIKE 'errors.%')
        AND source LIKE '%artillery.json%'
),

coded AS (
    SELECT summaries.*, unnest(map_entries(status_codes)) AS entry
    FROM summaries
    JOIN facts USING (app, host, timestamp, variant_dir, rate, run)
    WHERE preferred AND facts.evidence IS DISTINCT FROM 'raw'
),

numbered AS (
    SELECT *, try_cast(entry.key AS INTEGER) AS code
    FROM coded
    WHERE entry.value > 0
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
    left(message, 200) AS error,
    any_value(value)::BIGINT AS count,
    1 AS n_texts
FROM counted
JOIN patterns
    ON patterns.from_code = 0
    AND message LIKE patterns.text
WHERE position <= $most
GROUP BY app, host, timestamp, variant, rate, run, variant_dir, message, position
UNION ALL
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    variant_dir,
    stream,
    arg_min(cause, rank) AS cause,
    arg_min(side, rank) AS side,
    code,
    '' AS error,
    any_value(entry.value)::BIGINT AS count,
    0 AS n_texts
FROM numbered
JOIN patterns
    ON code >= patterns.from_code
    AND code < patterns.below_code
    AND patterns.answered_by IS NULL
    AND '' LIKE patterns.text
WHERE code NOT BETWEEN 200 AND 399
GROUP BY app, host, timestamp, variant, rate, run, variant_dir, stream, code
ORDER BY ALL
