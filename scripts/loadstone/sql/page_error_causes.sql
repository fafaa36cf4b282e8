-- One row per stream, cause, code and text of failed requests of runs that count, the most frequent cause first, and in it
-- the most frequent text: how many requests, and in which cells (rate, variant). A row without a text sums up `n_texts`.
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
