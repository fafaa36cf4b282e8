-- One row per run of a comparison: the value of $of, and the evidence it is from.
-- `valid_runs` (app, host, timestamp, variant, rate, variant_dir, run) selects the runs.
--
-- $of is cpu or memory: the mean usage of $name, a namespace or process or TOTAL, over its samples (millicores, MiB)
--     or, without samples, as printed in a table of namespaces. Otherwise a latency (ns): min, mean, p50, p75, p90, p95,
--     p99, p999 or max, of the run's requests (table run_figures) or, for a run without requests, as reported by the tool.
WITH
used AS (
    SELECT
        app, host, timestamp, variant_dir, rate, run,
        any_value(if($of = 'cpu', cpu_mean_millicores, memory_mean_mib)) AS value,
        'samples' AS evidence
    FROM resource_usage
    WHERE name = $name AND $of IN ('cpu', 'memory') AND (scope = 'total' OR name <> 'TOTAL')
    GROUP BY ALL
    HAVING count(*) = 1
),

printed AS (
    SELECT app, host, timestamp, variant_dir, rate, run, any_value(figures.value) AS value, 'printed table' AS evidence
    FROM figures
    WHERE
        section = $name AND statistic = 'avg' AND metric = if($of = 'cpu', 'CPU', 'Mem')
        AND $of IN ('cpu', 'memory') AND source LIKE '%.resource-summary.txt%'
    GROUP BY ALL
),

latencies AS (
    SELECT 'requests' AS evidence, * FROM run_figures
    UNION ALL BY NAME
    SELECT 'reported' AS evidence, *
    FROM summaries
    ANTI JOIN run_figures USING (app, host, timestamp, variant_dir, rate, run)
    WHERE stream = 'main' AND preferred
),

measured AS (
    SELECT
        app, host, timestamp, variant_dir, rate, run, evidence,
        CASE $of
            WHEN 'min' THEN min_ns
            WHEN 'mean' THEN mean_ns
            WHEN 'p50' THEN p50_ns
            WHEN 'p75' THEN p75_ns
            WHEN 'p90' THEN p90_ns
            WHEN 'p95' THEN p95_ns
            WHEN 'p99' THEN p99_ns
            WHEN 'p999' THEN p999_ns
            WHEN 'max' THEN max_ns
        END AS value
    FROM latencies
    WHERE $of NOT IN ('cpu', 'memory')
),

found AS (
    SELECT * FROM used
    UNION ALL
    SELECT * FROM printed ANTI JOIN used USING (app, host, timestamp, variant_dir, rate, run)
    UNION ALL BY NAME
    SELECT * FROM measured
)

SELECT host, timestamp, variant, rate, variant_dir, run, value, evidence
FROM valid_runs
JOIN found USING (app, host, timestamp, variant_dir, rate, run)
WHERE value IS NOT NULL
ORDER BY rate, variant, host, timestamp, variant_dir, run
