-- One row per stream, cause, code and message of failed requests of valid runs: number of requests and affected cells
-- (rate, variant). The most frequent cause is first, and within it the most frequent message. A row without a message
-- sums up `n_texts`.
WITH counted AS (
    SELECT
        stream, cause, side, code, error,
        sum(count)::BIGINT AS n_requests,
        max(n_texts) AS n_texts,
        list_sort(list(DISTINCT {'rate': rate, 'variant': variant})) AS cells
    FROM error_causes
    JOIN (SELECT app, host, timestamp, variant_dir, rate, run FROM runs WHERE NOT excluded)
        USING (app, host, timestamp, variant_dir, rate, run)
    GROUP BY stream, cause, side, code, error
)
SELECT *
FROM counted
ORDER BY
    stream <> 'main', stream, sum(n_requests) OVER (PARTITION BY stream, cause) DESC, cause,
    error IS NULL, n_requests DESC, code, error;
