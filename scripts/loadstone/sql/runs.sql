-- A row is one run (of measured_requests.sql, in $files): what its main stream's measured requests say.
--
-- repeated:          requests whose number (seq) another request of the run has too
-- clock_set_back_s:  by how much the clock of sent_at went back between requests that follow each other by their number;
--                    null where it did not, by more than a second. Numbers count requests as they were sent (vegeta) or
--                    as they ended (k6): so both, when they were sent and when they ended, went back by that
-- started_at:        null where the tool gave no time of day; of the first by its number where the clock was set back
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
