-- One row per rate, variant and part of the target (total, namespace or process), of the load generator and of its
-- machine: CPU and memory over valid runs. Means are means of the runs' means, with their standard deviation; minimum
-- and maximum are over all samples of all runs.
-- generator_cpus: the number of CPUs that the load generator could use.
-- n_nearly_full: runs in which the part used at least the share $nearly of these CPUs.
-- fullest_share: the highest such share of a run's mean, in run fullest_run.
WITH counted AS (
    SELECT
        used.*,
        runs.generator_cpus,
        used.cpu_mean_millicores / (1000 * runs.generator_cpus) AS share
    FROM resource_usage AS used
    JOIN runs USING (app, host, timestamp, variant, rate, run, variant_dir)
    WHERE NOT runs.excluded
)
SELECT
    rate,
    variant,
    scope,
    name,
    count(*) AS n_runs,
    max(generator_cpus) AS generator_cpus,
    avg(cpu_mean_millicores ORDER BY variant_dir, run) AS cpu_mean,
    stddev_pop(cpu_mean_millicores ORDER BY variant_dir, run) AS cpu_std,
    min(cpu_min_millicores) AS cpu_min,
    max(cpu_max_millicores) AS cpu_max,
    avg(memory_mean_mib ORDER BY variant_dir, run) AS memory_mean,
    stddev_pop(memory_mean_mib ORDER BY variant_dir, run) AS memory_std,
    min(memory_min_mib) AS memory_min,
    max(memory_max_mib) AS memory_max,
    count(*) FILTER (WHERE share >= $nearly) AS n_nearly_full,
    max(share) AS fullest_share,
    first(run ORDER BY share DESC, variant_dir, run) FILTER (WHERE share IS NOT NULL) AS fullest_run
FROM counted
GROUP BY rate, variant, scope, name
ORDER BY rate, variant, scope = 'total', scope, name;
