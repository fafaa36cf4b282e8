-- One row per measured request (of measured_requests.sql, in $files) of one stream of some valid runs, or of all of them
-- ($with_excluded), in the order of sending within each run; `series` numbers the runs.
--
-- sent_ns is -1 if the tool records no time. outcome: 1 (has a code) + 2 (failed) + 4 (timed out).
SELECT
    series,
    coalesce(sent_ns, -1) AS sent_ns,
    latency_ns,
    (if(code IS NULL, 0, 1) + if(error_class IS NULL, 0, 2) + if(timed_out, 4, 0))::UTINYINT AS outcome
FROM measured_requests($files, with_excluded := $with_excluded)
WHERE stream = $stream
ORDER BY series, seq, sent_ns, latency_ns, outcome
