-- Creates counted_requests, from which cells.sql makes most figures: the number and the total latency of the measured
-- requests (of measured_requests.sql, in $files) of each run and stream, by whether they were answered as asked and by
-- class of errors.
--
-- In a table, since a query that reads requests twice holds all of them in memory. Sums of integers are exact in any order
-- of threads.
CREATE OR REPLACE TEMP TABLE counted_requests AS
SELECT
    pool, stream, series, ok IS TRUE AS is_ok, error_class,
    count(*) AS n,
    count(code) AS n_told,
    sum(latency_ns) AS total_ns
FROM measured_requests($files, with_excluded := $with_excluded)
WHERE $stream IS NULL OR stream = $stream
GROUP BY ALL
