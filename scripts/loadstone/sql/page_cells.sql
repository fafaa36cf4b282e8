-- One row per cell (rate, variant) of the main stream: the figures of the campaign page, as table cells holds them or,
-- if $with_excluded, table cells_all: with excluded runs.
SELECT
    rate, variant, resolution_ns, n_runs, n_excluded, n_requests, n_timeouts,
    mean_ns, run_mean_ns, run_std_ns,
    p50_ns, p50_low_ns, p50_high_ns, p50_estimable,
    p90_ns, p90_low_ns, p90_high_ns, p90_estimable,
    p99_ns, p99_low_ns, p99_high_ns, p99_estimable,
    p999_ns, p999_low_ns, p999_high_ns, p999_estimable,
    ok_n_requests, ok_run_mean_ns, ok_run_std_ns, ok_p50_ns, ok_p90_ns, ok_p99_ns,
    error_fraction, error_fraction_std
FROM (
    SELECT * FROM cells WHERE NOT $with_excluded
    UNION ALL BY NAME
    SELECT * FROM cells_all WHERE $with_excluded
)
WHERE stream = 'main'
ORDER BY rate, variant;
