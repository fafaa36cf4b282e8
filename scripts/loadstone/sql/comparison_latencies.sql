-- A row is one measured request of the main stream, in the order in which its run sent it; `series` numbers runs.
-- $files holds the requests; `counting` (host, timestamp, variant_dir, run) names the runs.
SELECT
    dense_rank() OVER (ORDER BY host, timestamp, variant_dir, run) - 1 AS series,
    latency_ns
FROM read_parquet($files, hive_partitioning = false)
SEMI JOIN counting USING (host, timestamp, variant_dir, run)
WHERE phase = 'test' AND stream = 'main'
ORDER BY host, timestamp, variant_dir, run, seq
