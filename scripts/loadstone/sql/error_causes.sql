-- One row per run, stream, cause, code and message of failed measured requests, with their number.
--
-- Requests are those of measured_requests.sql, in $files; only failed ones are read. `patterns` is the list of causes
-- of analysis/error_causes.py (rank, cause, side, from_code, below_code, answered_by, text); the first match applies;
-- text is a pattern of LIKE. Parts of messages that differ between requests (addresses, resolved names, numbers) are
-- replaced, so that equal errors share a row; messages are cut after 1,000 characters.
-- At most $most rows per run and stream have a code and a message, those with the most requests. The others are summed
-- up by cause, in rows without code and message. n_texts: the number of messages of a row.
WITH failed AS (
    SELECT series, stream, code, answered_by, left(coalesce(error, ''), 1000) AS message, count(*) AS n
    FROM measured_requests($files, with_excluded := true)
    WHERE error_class IS NOT NULL
    GROUP BY series, stream, code, answered_by, message
),

texts AS (
    SELECT
        message,
        CASE
            WHEN message LIKE 'error\_code %' ESCAPE '\' THEN message
            ELSE left(
                regexp_replace(
                    regexp_replace(
                        regexp_replace(
                            regexp_replace(
                                regexp_replace(
                                    regexp_replace(message, '^[1-5][0-9][0-9] ', ''),
                                    'https?://[^"\s]*', '<address>', 'g'
                                ),
                                '\[[0-9a-fA-F:.]+(%[^\]]*)?\](:[0-9]+)?|\b[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?\b',
                                '<address>', 'g'
                            ),
                            'lookup [^ :]+', 'lookup <name>', 'g'
                        ),
                        '\b[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b', '<id>', 'g'
                    ),
                    '\b[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h)?\b', '#', 'g'
                ),
                200
            )
        END AS text
    FROM (SELECT DISTINCT message FROM failed)
),

-- One message of each kind is enough: messages that differ only in addresses and numbers have the same cause.
kinds AS (
    SELECT code, answered_by, text, min(message) AS message
    FROM failed
    JOIN texts USING (message)
    GROUP BY code, answered_by, text
),

judged AS (
    SELECT
        kinds.code,
        kinds.answered_by,
        kinds.text,
        arg_min(patterns.cause, patterns.rank) AS cause,
        arg_min(patterns.side, patterns.rank) AS side
    FROM kinds
    JOIN patterns
        ON kinds.code >= patterns.from_code
        AND kinds.code < patterns.below_code
        AND (patterns.answered_by IS NULL OR patterns.answered_by = kinds.answered_by)
        AND kinds.message LIKE patterns.text
    GROUP BY kinds.code, kinds.answered_by, kinds.text
),

counted AS (
    SELECT
        failed.series,
        failed.stream,
        judged.cause,
        judged.side,
        failed.code,
        texts.text,
        sum(failed.n)::BIGINT AS n,
        row_number() OVER (
            PARTITION BY failed.series, failed.stream ORDER BY sum(failed.n) DESC, judged.cause, failed.code, texts.text
        ) AS position
    FROM failed
    JOIN texts USING (message)
    JOIN judged
        ON judged.code = failed.code
        AND judged.answered_by IS NOT DISTINCT FROM failed.answered_by
        AND judged.text = texts.text
    GROUP BY failed.series, failed.stream, judged.cause, judged.side, failed.code, texts.text
)

SELECT
    series,
    stream,
    cause,
    any_value(side) AS side,
    CASE WHEN position <= $most THEN code END AS code,
    CASE WHEN position <= $most THEN text END AS error,
    sum(n)::BIGINT AS count,
    count(*) AS n_texts
FROM counted
GROUP BY series, stream, cause, CASE WHEN position <= $most THEN position END, 5, 6
ORDER BY series, stream, count DESC, cause, code, error
