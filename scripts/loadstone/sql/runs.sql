-- A row is one run of the cell whose requests are in $files: what its main stream's measured requests say.
--
-- repeated:        requests whose number (seq) another request of the run has too
-- send_lag_p99_ns: how late requests were sent. Request number n of an open load is due at zero + n / rate, where zero
--                  is when request 0 was sent or, without it, the earliest start that any other request implies.
-- halves:          of the requests by their number, whatever time each half took
WITH main AS (
    SELECT run, rate, seq, epoch_ns(sent_at) AS sent_ns, latency_ns, error_class
    FROM read_parquet($files)
    WHERE stream = 'main' AND phase = 'test'
),

counted AS (
    SELECT
        run,
        count(*) AS requests,
        count(*) - count(DISTINCT seq) AS repeated,
        count(error_class) / count(*) AS failed_share,
        avg(latency_ns) AS mean_ns,
        min(sent_ns) AS started_ns,
        coalesce(
            min(sent_ns) FILTER (WHERE seq = 0),
            min(sent_ns - TRY_CAST(round(seq * 1e9 / rate) AS BIGINT))
        ) AS zero_ns
    FROM main
    GROUP BY run
)

SELECT
    run,
    any_value(requests) AS requests,
    any_value(repeated) AS repeated,
    any_value(failed_share) AS failed_share,
    any_value(mean_ns) AS mean_ns,
    avg(latency_ns) FILTER (WHERE 2 * seq < requests) AS first_half_mean_ns,
    avg(latency_ns) FILTER (WHERE 2 * seq >= requests) AS second_half_mean_ns,
    make_timestamp(any_value(started_ns) // 1000) AS started_at,
    quantile_cont(sent_ns - zero_ns - seq * 1e9 / rate, 0.99) AS send_lag_p99_ns
FROM main
JOIN counted USING (run)
GROUP BY run
ORDER BY run
