-- One row per generator of a run with several: how late it sent its measured requests (of measured_requests.sql, in
-- $files) of the main stream, by its own clock.
--
-- zero_ns: when request 0 of the run was due by this generator's clock: the earliest time implied by any of its
--          requests
-- due_ns:  as in sending.sql
WITH main AS (
    SELECT
        series,
        generator,
        epoch_ns(sent_at)::HUGEINT AS sent_ns,
        seq::HUGEINT * floor(1e9 / rate)::HUGEINT AS due_ns
    FROM measured_requests($files, with_excluded := true)
    WHERE stream = 'main' AND sent_at IS NOT NULL AND rate > 1e-9 AND generator IS NOT NULL
),

late AS (
    SELECT
        *,
        min(sent_ns - due_ns) OVER (PARTITION BY series, generator) AS zero_ns
    FROM main
)

SELECT
    series,
    generator,
    count(*) AS requests,
    any_value(zero_ns)::BIGINT AS zero_ns,
    quantile_cont((sent_ns - zero_ns - due_ns)::DOUBLE, 0.5) AS lag_p50_ns,
    quantile_cont((sent_ns - zero_ns - due_ns)::DOUBLE, 0.99) AS lag_p99_ns,
    max(sent_ns - zero_ns - due_ns)::DOUBLE AS lag_max_ns
FROM late
GROUP BY series, generator
ORDER BY series, generator
