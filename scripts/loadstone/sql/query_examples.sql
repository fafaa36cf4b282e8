-- The example queries of the query page, which offers those with results; the first one is in the text box. Each begins
-- with its title, ends with a line of its own, and uses only published tables.

-- p99 by load and variant in the newest campaign
SELECT
    rate,
    variant,
    n_runs,
    round(p99_ns / 1e6, 3) AS p99_ms,
    round(p99_low_ns / 1e6, 3) AS low_ms,
    round(p99_high_ns / 1e6, 3) AS high_ms,
    p99_estimable AS enough_requests
FROM cells
SEMI JOIN (
    FROM runs
    ORDER BY started_at DESC NULLS LAST, timestamp DESC, app, host
    LIMIT 1
) AS newest USING (app, host, timestamp)
WHERE stream = 'main'
ORDER BY rate, p99_ns, variant
;

-- Which runs are excluded, and why
SELECT
    exclusion_reason,
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    requests,
    expected_requests,
    problems
FROM runs
WHERE excluded
ORDER BY ALL
;

-- Spread between runs of the same cell
-- (standard deviation of the runs' means)
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    n_runs,
    round(run_mean_ns / 1e6, 3) AS mean_ms,
    round(100 * run_std_ns / run_mean_ns, 1) AS spread_percent
FROM cells
WHERE stream = 'main' AND n_runs > 1
ORDER BY run_std_ns / run_mean_ns DESC, app, host, timestamp, variant, rate
;

-- The slowest cells
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    round(p50_ns / 1e6, 3) AS p50_ms,
    round(p99_ns / 1e6, 3) AS p99_ms,
    round(100 * error_fraction, 2) AS failed_percent
FROM cells
WHERE stream = 'main'
ORDER BY p50_ns DESC NULLS LAST, app, host, timestamp, variant, rate
LIMIT 20
;

-- Difference from the fastest variant at the same load
SELECT
    app,
    host,
    timestamp,
    rate,
    variant,
    arg_min(variant, p50_ns) OVER at_this_load AS fastest,
    round((p50_ns - min(p50_ns) OVER at_this_load) / 1e6, 3) AS added_p50_ms,
    round((p99_ns - arg_min(p99_ns, p50_ns) OVER at_this_load) / 1e6, 3) AS added_p99_ms
FROM cells
WHERE stream = 'main'
WINDOW at_this_load AS (PARTITION BY app, host, timestamp, rate)
ORDER BY app, host, timestamp, rate, p50_ns, variant
;

-- Overhead per layer
SELECT
    app,
    host,
    comparison,
    timestamps,
    rate,
    below,
    variant,
    statistic,
    round(added_ns / 1e6, 3) AS added_ms,
    round(added_low_ns / 1e6, 3) AS low_ms,
    round(added_high_ns / 1e6, 3) AS high_ms,
    warning
FROM layers
WHERE added_ns IS NOT NULL
ORDER BY ALL
;

-- Verdicts relative to the baseline
SELECT
    app,
    host,
    comparison,
    timestamps,
    rate,
    variant,
    baseline,
    statistic,
    verdict,
    round(shift / 1e6, 3) AS shift_ms,
    round(shift_low / 1e6, 3) AS low_ms,
    round(shift_high / 1e6, 3) AS high_ms,
    runs_needed
FROM effects
WHERE statistic <> 'error_fraction'
ORDER BY ALL
;

-- Saturation points
SELECT
    app,
    host,
    comparison,
    timestamps,
    variant,
    knee_rate,
    low,
    high,
    "by" AS limited_by,
    problem
FROM knees
ORDER BY ALL
;

-- Runs whose latency is not flat
SELECT
    shape,
    app,
    host,
    timestamp,
    variant,
    rate,
    run
FROM run_shapes
WHERE shape <> 'flat'
ORDER BY ALL
;

-- Share of failed requests by class of error
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    error.key AS error_class,
    round(100 * error.value, 3) AS percent
FROM (SELECT *, unnest(map_entries(error_fractions)) AS error FROM cells)
WHERE stream = 'main' AND error.value > 0
ORDER BY error.value DESC, app, host, timestamp, variant, rate, error_class
;

-- Why requests failed, and on which side
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    side,
    cause,
    code,
    sum(count) AS n_requests,
    min(error) AS example
FROM error_causes
JOIN (SELECT app, host, timestamp, variant_dir, rate, run FROM runs WHERE NOT excluded)
    USING (app, host, timestamp, variant_dir, rate, run)
GROUP BY app, host, timestamp, variant, rate, side, cause, code
ORDER BY n_requests DESC, app, host, timestamp, variant, rate, side, cause, code
;

-- Send lag of the load generator
SELECT
    app,
    host,
    timestamp,
    variant,
    rate,
    run,
    round(send_lag_p99_ns / 1e6, 3) AS send_lag_p99_ms,
    generator
FROM runs
WHERE send_lag_p99_ns IS NOT NULL
ORDER BY send_lag_p99_ns DESC, app, host, timestamp, variant, rate, run
LIMIT 50
;

-- All campaigns, with their numbers of runs and excluded runs
SELECT
    app,
    host,
    timestamp,
    min(started_at) AS began,
    count(*) AS n_runs,
    count(*) FILTER (excluded) AS n_excluded,
    sum(requests) AS n_requests,
    list_sort(list(DISTINCT variant)) AS variants
FROM runs
GROUP BY app, host, timestamp
ORDER BY began DESC NULLS LAST, timestamp DESC, app, host
;

-- Problems found in the archive
SELECT
    problem,
    count(*) AS n,
    min(source) AS example
FROM problems
GROUP BY problem
ORDER BY n DESC, problem
;
