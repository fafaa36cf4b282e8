-- One row per cell (rate, variant) of the main stream: the figures of the campaign page, from table cells or, with
-- excluded runs ($with_excluded), from table cells_all.
SELECT
    rate, variant, resolution_ns, n_runs, n_excluded, n_requests, n_timeouts,
    mean_ns, run_mean_ns, run_std_ns,
    COLUMNS('^(ok_)?p\d+_(ns|low_ns|high_ns|estimable)$'),
    ok_n_requests, ok_run_mean_ns, ok_run_std_ns,
    error_fraction, error_fraction_std
FROM (
    SELECT * FROM cells WHERE NOT $with_excluded
    UNION ALL BY NAME
    SELECT * FROM cells_all WHERE $with_excluded
)
WHERE stream = 'main'
ORDER BY rate, variant;
