-- A row is one measured request of one stream of a cell, in the order in which its run sent it.
-- $files holds the cell's requests; `included` (variant_dir, run, series) names and numbers the runs that count.
SELECT
    included.series,
    requests.latency_ns
FROM read_parquet($files) AS requests
JOIN included USING (variant_dir, run)
WHERE requests.phase = 'test' AND requests.stream = $stream
ORDER BY included.series, requests.seq
