-- One row per valid run and part of its target (namespace, process, or TOTAL, the sum over them): CPU in millicores and
-- memory in MiB, from samples or, without samples, as printed in a table of namespaces (`evidence`: ``samples`` or
-- ``printed table``).
WITH
counted AS (SELECT * FROM runs WHERE NOT excluded),
sampled AS (
    SELECT
        host, timestamp, rate, variant, variant_dir, run, name AS part, 'samples' AS evidence,
        cpu_min_millicores AS cpu_min, cpu_mean_millicores AS cpu_mean, cpu_max_millicores AS cpu_max,
        memory_min_mib AS memory_min, memory_mean_mib AS memory_mean, memory_max_mib AS memory_max
    FROM resource_usage
    WHERE scope IN ('namespace', 'total') OR (scope = 'process' AND name <> 'generator')
),
printed AS (
    SELECT
        host, timestamp, rate, variant, variant_dir, run, section AS part, 'printed table' AS evidence,
        max(value) FILTER (WHERE metric = 'CPU' AND statistic = 'min') AS cpu_min,
        max(value) FILTER (WHERE metric = 'CPU' AND statistic = 'avg') AS cpu_mean,
        max(value) FILTER (WHERE metric = 'CPU' AND statistic = 'max') AS cpu_max,
        max(value) FILTER (WHERE metric = 'Mem' AND statistic = 'min') AS memory_min,
        max(value) FILTER (WHERE metric = 'Mem' AND statistic = 'avg') AS memory_mean,
        max(value) FILTER (WHERE metric = 'Mem' AND statistic = 'max') AS memory_max
    FROM figures
    WHERE source LIKE '%.resource-summary.txt%'
    GROUP BY ALL
),
found AS (
    SELECT * FROM sampled
    UNION ALL BY NAME
    SELECT * FROM printed ANTI JOIN sampled USING (host, timestamp, rate, variant_dir, run)
)
SELECT found.*, labels
FROM found
JOIN (SELECT host, timestamp, rate, variant_dir, run, labels FROM counted) USING (host, timestamp, rate, variant_dir, run)
ORDER BY rate, variant, host, timestamp, variant_dir, run, part = 'TOTAL', part;
