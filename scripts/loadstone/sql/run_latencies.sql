-- One row per measured request (of measured_requests.sql, in $files) of the main stream of one run, in the order of
-- sending.
SELECT
    run,
    seq,
    latency_ns,
    sent_ns
FROM measured_requests($files, with_excluded := true)
WHERE stream = 'main'
ORDER BY run, sent_ns, seq
