-- A row is one run sent on a clock: how late the measured requests (of measured_requests.sql, in $files) of its main
-- stream were, and their latency from when they were due.
--
-- due_ns:        request number n is due at n times the interval, of whole nanoseconds as vegeta has it
--                (ConstantPacer.Pace in lib/pacer.go of v12.13.0), after the first was
-- zero_ns:       when the first was due: the earliest start that any request implies. None is sent early, so that one
--                punctual request is enough, and a late first one does not hide how late all others are. Of several
--                generators each has its own, for their clocks are several (table senders: whether they began together)
-- achieved_rate: since the first was due; null for one request
-- least_rate:    of the first and the second half of the requests, since the first of each was sent
-- corrected_*:   of latency + lag, Tene 2013 ("How NOT to measure latency": coordinated omission); exact and no
--                estimate, since every request was sent and it is known when each was due
-- lag_max_seq:   the first request that was late by that; lag_max_due_s: when it was due, since the first was
-- A run whose requests have no time of day is not there. Numbers and times are HUGEINT, which those of no file can
-- overflow; DOUBLE would round times to 256 ns.
WITH main AS (
    SELECT
        run,
        coalesce(generator, -1) AS generator,
        seq::HUGEINT AS seq,
        epoch_ns(sent_at)::HUGEINT AS sent_ns,
        latency_ns,
        seq::HUGEINT * floor(1e9 / rate)::HUGEINT AS due_ns
    FROM measured_requests($files)
    WHERE stream = 'main' AND sent_at IS NOT NULL AND rate > 1e-9
),

zeros AS (
    SELECT
        run,
        generator,
        min(sent_ns - due_ns) AS zero_ns
    FROM main
    GROUP BY ALL
),

middles AS (
    SELECT
        run,
        (min(seq) + max(seq)) // 2 AS middle
    FROM main
    GROUP BY run
),

late AS (
    SELECT
        main.*,
        zero_ns,
        middle,
        (sent_ns - zero_ns - due_ns)::DOUBLE AS lag_ns
    FROM main
    JOIN zeros USING (run, generator)
    JOIN middles USING (run)
)

SELECT
    run,
    (max(seq) - min(seq))::DOUBLE * 1e9 / nullif((max(sent_ns) - min(zero_ns) - min(due_ns))::DOUBLE, 0) AS achieved_rate,
    least(
        (any_value(middle) - min(seq))::DOUBLE * 1e9
        / nullif((max(sent_ns) FILTER (WHERE seq <= middle) - min(sent_ns))::DOUBLE, 0),
        (max(seq) - any_value(middle))::DOUBLE * 1e9
        / nullif((max(sent_ns) - min(sent_ns) FILTER (WHERE seq >= middle))::DOUBLE, 0)
    ) AS least_rate,
    quantile_cont(lag_ns, 0.5) AS lag_p50_ns,
    quantile_cont(lag_ns, 0.9) AS lag_p90_ns,
    quantile_cont(lag_ns, 0.99) AS lag_p99_ns,
    max(lag_ns) AS lag_max_ns,
    arg_max(seq, (lag_ns, -seq))::BIGINT AS lag_max_seq,
    arg_max(due_ns, (lag_ns, -seq))::DOUBLE / 1e9 AS lag_max_due_s,
    avg(latency_ns) AS observed_mean_ns,
    quantile_cont(latency_ns, 0.5) AS observed_p50_ns,
    quantile_cont(latency_ns, 0.9) AS observed_p90_ns,
    quantile_cont(latency_ns, 0.99) AS observed_p99_ns,
    quantile_cont(latency_ns, 0.999) AS observed_p999_ns,
    avg(latency_ns + lag_ns::HUGEINT) AS corrected_mean_ns,
    quantile_cont(latency_ns + lag_ns, 0.5) AS corrected_p50_ns,
    quantile_cont(latency_ns + lag_ns, 0.9) AS corrected_p90_ns,
    quantile_cont(latency_ns + lag_ns, 0.99) AS corrected_p99_ns,
    quantile_cont(latency_ns + lag_ns, 0.999) AS corrected_p999_ns
FROM late
GROUP BY run
ORDER BY run
