-- One row per run (of measured_requests.sql, in $files), excluded or not: the figures of the measured requests of its
-- main stream. Pages and other queries read a run's figures from table run_figures, which has these.
--
-- Percentiles interpolate linearly between order statistics, as in stats/latencies.py; latencies_ns are those at $shares.
-- known:             the number of requests that took less than any that timed out; latencies from there on are lower
--                    bounds
-- success:           the share of successful requests among those with a code; failed_share is the rest
-- repeated:          the number of requests whose number (seq) another request of the run has as well
-- clock_set_back_s:  by how much the clock of sent_at was set back between requests with consecutive numbers; null
--                    unless it was more than a second. Numbers are in the order of sending (vegeta) or of completion
--                    (k6), so both start and end of a request must have been set back by that much
-- started_at:        null if the tool records no time of day; if the clock was set back, the time of the first request
--                    by number
WITH main AS (
    SELECT
        series, generator, seq, epoch_ns(sent_at)::HUGEINT AS sent_ns, latency_ns, written_ns, code, error_class, ok, timed_out
    FROM measured_requests($files, with_excluded := true)
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
    WINDOW numbered AS (PARTITION BY series, generator ORDER BY seq)
),

least AS (
    SELECT series, min(latency_ns) AS least_timeout_ns
    FROM main
    WHERE timed_out
    GROUP BY series
)

SELECT
    series,
    count(*) AS n_requests,
    count(*) FILTER (WHERE timed_out) AS n_timeouts,
    count(*) FILTER (WHERE least_timeout_ns IS NULL OR latency_ns < least_timeout_ns) AS known,
    count(code) FILTER (WHERE error_class IS NULL) / nullif(count(code), 0) AS success,
    count(error_class) / nullif(count(code), 0) AS failed_share,
    avg(latency_ns) AS mean_ns,
    min(latency_ns) AS min_ns,
    max(latency_ns) AS max_ns,
    quantile_cont(latency_ns, $shares) AS latencies_ns,
    count(*) FILTER (WHERE ok) AS ok_n_requests,
    avg(latency_ns) FILTER (WHERE ok) AS ok_mean_ns,
    quantile_cont(latency_ns, $shown) FILTER (WHERE ok) AS ok_percentiles_ns,
    count(*) - count(DISTINCT seq) AS repeated,
    if(max(back_ns) > 1000000000, max(back_ns)::DOUBLE / 1e9, NULL) AS clock_set_back_s,
    make_timestamp((if(max(back_ns) > 1000000000, arg_min(sent_ns, seq), min(sent_ns)) // 1000)::BIGINT) AS started_at
FROM followed
LEFT JOIN least USING (series)
GROUP BY series
ORDER BY series
