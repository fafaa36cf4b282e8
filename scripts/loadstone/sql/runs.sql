-- One row per run (of measured_requests.sql, in $files): figures of the measured requests of its main stream.
--
-- repeated:          the number of requests whose number (seq) another request of the run has as well
-- clock_set_back_s:  by how much the clock of sent_at was set back between requests with consecutive numbers; null
--                    unless it was more than a second. Numbers are in the order of sending (vegeta) or of completion
--                    (k6), so both start and end of a request must have been set back by that much
-- started_at:        null if the tool records no time of day; if the clock was set back, the time of the first request
--                    by number
WITH main AS (
    SELECT run, generator, seq, epoch_ns(sent_at)::HUGEINT AS sent_ns, latency_ns, written_ns, code, error_class
    FROM measured_requests($files)
    WHERE stream = 'main'
),

followed AS (
    SELECT
        *,
        least(
            lag(sent_ns) OVER numbered - sent_ns,
            lag(sent_ns + written_ns) OVER numbered - sent_ns - written_ns
        ) AS back_ns
    FROM main
    WINDOW numbered AS (PARTITION BY run, generator ORDER BY seq)
)

SELECT
    run,
    count(*) AS requests,
    count(*) - count(DISTINCT seq) AS repeated,
    count(error_class) / nullif(count(code), 0) AS failed_share,
    avg(latency_ns) AS mean_ns,
    if(max(back_ns) > 1000000000, max(back_ns)::DOUBLE / 1e9, NULL) AS clock_set_back_s,
    make_timestamp((if(max(back_ns) > 1000000000, arg_min(sent_ns, seq), min(sent_ns)) // 1000)::BIGINT) AS started_at
FROM followed
GROUP BY run
ORDER BY run
