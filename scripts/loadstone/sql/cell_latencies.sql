-- A row is one measured request of one stream of a cell, in the order in which its run sent it; `series` numbers runs.
-- $files holds the cell's requests; `included` (variant_dir, run) names the runs that count.
SELECT
    dense_rank() OVER (ORDER BY variant_dir, run) - 1 AS series,
    latency_ns
FROM read_parquet($files)
SEMI JOIN included USING (variant_dir, run)
WHERE phase = 'test' AND stream = $stream
ORDER BY variant_dir, run, seq
