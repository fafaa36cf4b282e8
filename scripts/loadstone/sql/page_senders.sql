-- One row per generator and place of the page's campaign, for runs with several generators (table senders): send lag
-- and clock offset over all runs, including excluded ones. Times in ns; clocks are null if all generators are on one
-- machine.
SELECT
    generator,
    place,
    any_value(process) AS process,
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
