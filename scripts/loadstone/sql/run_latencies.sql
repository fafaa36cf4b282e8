-- A row is one measured request of the main stream of one run of a cell, in the order of sending.
-- $files holds the cell's requests. started_ns is when it was sent: since 1970, or since the run's start where the tool
-- gives no time of day; null where it gives neither.
SELECT
    run,
    seq,
    latency_ns,
    coalesce(epoch_ns(sent_at), offset_ns) AS started_ns
FROM read_parquet($files)
WHERE stream = 'main' AND phase = 'test'
ORDER BY run, started_ns, seq
