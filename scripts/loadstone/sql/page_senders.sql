-- One row per generator and place of a page's campaign, where several shared the load, of table senders: how late it was
-- and how its clock stood, over all runs, left-out ones too. Times in ns; those of clocks are null on one machine.
SELECT
    generator,
    place,
    count(*) AS n_runs,
    sum(requests)::BIGINT AS n_requests,
    median(lag_p99_ns) AS lag_p99_ns,
    max(lag_p99_ns) AS worst_lag_p99_ns,
    max(start_lag_ns) AS start_lag_ns,
    arg_max(clock_offset_ns, abs(clock_offset_ns)) AS clock_offset_ns,
    max(clock_uncertainty_ns) AS clock_uncertainty_ns,
    max(abs(clock_drift_ns)) AS clock_drift_ns
FROM senders
GROUP BY generator, place
ORDER BY generator, place;
