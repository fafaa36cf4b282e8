-- One row per measured request (of measured_requests.sql, in $files) of the main stream, by run in the order of
-- sending.
SELECT
    series,
    seq,
    latency_ns,
    sent_ns
FROM measured_requests($files, with_excluded := true)
WHERE stream = 'main'
ORDER BY series, sent_ns, seq, latency_ns
