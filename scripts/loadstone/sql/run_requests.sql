-- One row per measured request (of measured_requests.sql, in $files) of stream $stream of the runs $series (null: of all
-- that are selected), ordered by run and by number. $with_excluded: of excluded runs too. $every_phase: requests of all
-- phases, which `phase` names.
--
-- outcome: 1 (has a code) + 2 (failed) + 4 (timed out) + 8 (answered as asked) + 16 (of the measured phase)
SELECT
    series,
    seq,
    sent_ns,
    latency_ns,
    (
        if(code IS NULL, 0, 1) + if(error_class IS NULL, 0, 2) + if(timed_out, 4, 0) + if(ok, 8, 0) + if(measured, 16, 0)
    )::UTINYINT AS outcome,
    if($every_phase, phase, NULL) AS phase
FROM measured_requests($files, every_phase := $every_phase, with_excluded := $with_excluded)
WHERE stream = $stream AND ($series IS NULL OR list_contains($series, series))
ORDER BY series, seq, sent_ns, latency_ns, outcome
