-- A row is one run of the cell whose requests are in $files: what its main stream's measured requests say.
--
-- repeated:        requests whose number (seq) another request of the run has too
-- send_lag_p99_ns: how late requests were sent. Request number n of an open load is due at zero + n / rate, where zero
--                  is when request 0 was sent or, without it, the earliest start that any other request implies.
WITH main AS (
    SELECT run, rate, seq, epoch_ns(sent_at) AS sent_ns
    FROM read_parquet($files)
    WHERE stream = 'main' AND phase = 'test'
),

counted AS (
    SELECT
        run,
        count(*) AS requests,
        count(*) - count(DISTINCT seq) AS repeated,
        min(sent_ns) AS started_ns,
        coalesce(
            min(sent_ns) FILTER (WHERE seq = 0),
            min(sent_ns - CAST(round(seq * 1e9 / rate) AS BIGINT))
        ) AS zero_ns
    FROM main
    GROUP BY run
)

SELECT
    run,
    any_value(requests) AS requests,
    any_value(repeated) AS repeated,
    make_timestamp(any_value(started_ns) // 1000) AS started_at,
    quantile_cont(sent_ns - zero_ns - seq * 1e9 / rate, 0.99) AS send_lag_p99_ns
FROM main
JOIN counted USING (run)
GROUP BY run
ORDER BY run
