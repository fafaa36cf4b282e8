-- A row is one measured request of one stream of some runs, in the order in which its run sent it; `series` numbers runs.
--
-- $files holds the requests; `included` (host, timestamp, variant_dir, run, series, timeout_ns) names the runs.
-- latency_ns of a request that timed out is what it took at least: some tools write 0 there, or what came before it.
-- sent_ns is -1 where the tool tells no time. outcome: 1 told + 2 failed + 4 timed out.
SELECT
    included.series,
    coalesce(epoch_ns(requests.sent_at), requests.offset_ns, -1) AS sent_ns,
    if(
        requests.error_class = 'timeout',
        greatest(requests.latency_ns, coalesce(included.timeout_ns, 0)),
        requests.latency_ns
    ) AS latency_ns,
    (
        if(requests.code IS NULL, 0, 1)
        + if(requests.error_class IS NULL, 0, 2)
        + if(requests.error_class = 'timeout', 4, 0)
    )::UTINYINT AS outcome
FROM read_parquet($files, hive_partitioning = false) AS requests
JOIN included USING (host, timestamp, variant_dir, run)
WHERE requests.phase = 'test' AND requests.stream = $stream
ORDER BY included.series, requests.seq
