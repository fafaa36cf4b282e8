-- One row per run whose requests are sent on a schedule: how late the measured requests (of measured_requests.sql, in
-- $files) of its main stream were sent, and their latency since they were due. Latencies since they were sent are those
-- of run_figures.sql.
--
-- due_ns:        request number n is due n intervals after the first one; intervals are integers in nanoseconds, as in
--                vegeta (ConstantPacer.Pace in lib/pacer.go of v12.13.0)
-- zero_ns:       when the first one was due: the earliest start implied by any request. No request is sent early, so
--                one punctual request is enough, and a late first request does not hide the lag of all others. Each of
--                several generators has its own, because they have different clocks (table senders: whether they began
--                together)
-- achieved_rate: since the first request was due; null for one request
-- least_rate:    the smaller rate of the first and the second half of the requests, each since its first request was
--                sent
-- corrected_*:   of latency + lag, Tene 2013 ("How NOT to measure latency": coordinated omission); exact, not an
--                estimate, because every request was sent and its due time is known
-- lag_max_seq:   the first request with the maximum lag; lag_max_due_s: when it was due, since the first one was
--
-- Runs whose requests have no time of day have no row. Numbers and times are HUGEINT, which no value in a file can
-- overflow; DOUBLE would round times to 256 ns.
WITH main AS (
    SELECT
        series,
        coalesce(generator, -1) AS generator,
        seq::HUGEINT AS seq,
        epoch_ns(sent_at)::HUGEINT AS sent_ns,
        latency_ns,
        seq::HUGEINT * floor(1e9 / rate)::HUGEINT AS due_ns
    FROM measured_requests($files, with_excluded := true)
    WHERE stream = 'main' AND sent_at IS NOT NULL AND rate > 1e-9
),

zeros AS (
    SELECT
        series,
        generator,
        min(sent_ns - due_ns) AS zero_ns
    FROM main
    GROUP BY ALL
),

middles AS (
    SELECT
        series,
        (min(seq) + max(seq)) // 2 AS middle
    FROM main
    GROUP BY series
),

late AS (
    SELECT
        main.*,
        zero_ns,
        middle,
        (sent_ns - zero_ns - due_ns)::DOUBLE AS lag_ns
    FROM main
    JOIN zeros USING (series, generator)
    JOIN middles USING (series)
)

SELECT
    series,
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
    avg(latency_ns + lag_ns::HUGEINT) AS corrected_mean_ns,
    quantile_cont(latency_ns + lag_ns, 0.5) AS corrected_p50_ns,
    quantile_cont(latency_ns + lag_ns, 0.9) AS corrected_p90_ns,
    quantile_cont(latency_ns + lag_ns, 0.99) AS corrected_p99_ns,
    quantile_cont(latency_ns + lag_ns, 0.999) AS corrected_p999_ns
FROM late
GROUP BY series
ORDER BY series
