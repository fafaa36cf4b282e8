-- A row is one run of the cell whose requests are in $files: what its main stream's measured requests say.
--
-- repeated: requests whose number (seq) another request of the run has too
-- sent_at is null where the tool gave no time of day; then so is what rests on it
WITH main AS (
    SELECT run, seq, epoch_ns(sent_at) AS sent_ns, latency_ns, code, error_class
    FROM read_parquet($files)
    WHERE stream = 'main' AND phase = 'test'
)

SELECT
    run,
    count(*) AS requests,
    count(*) - count(DISTINCT seq) AS repeated,
    count(error_class) / nullif(count(code), 0) AS failed_share,
    avg(latency_ns) AS mean_ns,
    make_timestamp(min(sent_ns) // 1000) AS started_at
FROM main
GROUP BY run
ORDER BY run
