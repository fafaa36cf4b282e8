-- One row per measured request (of measured_requests.sql, in $files) of stream $stream of the runs $series (null: of all
-- that are selected). $with_excluded: of excluded runs too. $every_phase: requests of all phases. $columns are those of
-- the relation and the ones below.
--
-- times_ns: 0 if unknown
-- outcome:  1 (has a code) + 2 (failed) + 4 (timed out) + 8 (answered as asked) + 16 (of the measured phase) + 32 (has a
--           time of day) + 64 (has a time)
SELECT COLUMNS($columns)
FROM (
    SELECT
        * REPLACE (coalesce(generator, -1) AS generator),
        coalesce(sent_ns, 0) AS times_ns,
        (
            if(code IS NULL, 0, 1) + if(error_class IS NULL, 0, 2) + if(timed_out, 4, 0) + if(ok, 8, 0)
            + if(measured, 16, 0) + if(epoch_ns(sent_at) IS NULL, 0, 32) + if(sent_ns IS NULL, 0, 64)
        )::UTINYINT AS outcome
    FROM measured_requests($files, every_phase := $every_phase, with_excluded := $with_excluded)
    WHERE stream = $stream AND ($series IS NULL OR list_contains($series, series))
)
