-- One row per rate ($rates), variant, part of the target and time bin: mean and standard deviation of CPU and memory over
-- valid runs, at_s seconds after the first request of the test or, if that time is unknown, after the first sample of
-- the run.
-- A bin is as long as the sampling interval, or a multiple of it that gives at most $bins bins. The sum over all parts
-- is only given for bins in which every part of a run has a sample.
WITH
placed AS (
    SELECT
        rate,
        sampled.variant,
        sampled.variant_dir,
        sampled.run,
        if(sampled.scope = 'pod', 'namespace', sampled.scope) AS scope,
        if(sampled.scope = 'pod', split_part(sampled.name, '/', 1), sampled.name) AS name,
        sampled.name AS part,
        epoch_us(coalesce(sampled.asked_at, sampled.sampled_at)) / 1e6 AS at_s,
        at_s - coalesce(epoch_us(runs.started_at) / 1e6, min(at_s) OVER of_run) AS since_s,
        sampled.cpu_millicores,
        sampled.memory_mib
    FROM resources AS sampled
    JOIN runs USING (app, host, timestamp, variant, rate, run, variant_dir)
    WHERE rate IN (SELECT unnest($rates)) AND NOT runs.excluded
    WINDOW of_run AS (PARTITION BY rate, sampled.host, sampled.timestamp, sampled.variant_dir, sampled.run)
),

rounds AS (
    SELECT
        rate, variant, variant_dir, run, scope, name, since_s,
        if(count(cpu_millicores) = count(*), sum(cpu_millicores ORDER BY part, cpu_millicores), NULL) AS cpu,
        if(count(memory_mib) = count(*), sum(memory_mib ORDER BY part, memory_mib), NULL) AS memory
    FROM placed
    GROUP BY ALL
),

steps AS (
    SELECT rate, since_s - lag(since_s) OVER (PARTITION BY rate, variant, variant_dir, run, scope, name ORDER BY since_s) AS step_s
    FROM rounds
),

width AS (
    SELECT rate, greatest(coalesce(median(step_s), 1), 0.001) AS least_s FROM steps GROUP BY rate
),

bins AS (
    SELECT rate, least_s * greatest(ceil((max(since_s) - min(since_s)) / least_s / $bins), 1) AS width_s
    FROM rounds
    JOIN width USING (rate)
    GROUP BY rate, least_s
),

parts AS (
    SELECT
        rate, variant, variant_dir, run, scope, name,
        round(since_s / width_s) * width_s + 0.0 AS at_s,  -- not -0.0, which is another number on a page
        avg(cpu ORDER BY since_s) AS cpu,
        avg(memory ORDER BY since_s) AS memory
    FROM rounds
    JOIN bins USING (rate)
    GROUP BY ALL
),

summed AS (
    SELECT
        rate, variant, variant_dir, run, at_s,
        count(*) AS n_here,
        sum(cpu ORDER BY scope, name) AS cpu,
        sum(memory ORDER BY scope, name) AS memory
    FROM parts
    WHERE scope = 'namespace' OR (scope = 'process' AND name <> 'generator')
    GROUP BY ALL
),

everything AS (
    SELECT * FROM parts
    UNION ALL BY NAME
    SELECT
        rate, variant, variant_dir, run, at_s, cpu, memory,
        'total' AS scope,
        'TOTAL' AS name
    FROM summed
    QUALIFY n_here = max(n_here) OVER (PARTITION BY rate, variant, variant_dir, run)
)

SELECT
    rate,
    variant,
    scope,
    name,
    at_s,
    count(*) AS n_runs,
    avg(cpu ORDER BY variant_dir, run) AS cpu,
    stddev_pop(cpu ORDER BY variant_dir, run) AS cpu_std,
    avg(memory ORDER BY variant_dir, run) AS memory,
    stddev_pop(memory ORDER BY variant_dir, run) AS memory_std
FROM everything
GROUP BY rate, variant, scope, name, at_s
ORDER BY rate, scope = 'total' DESC, scope, name, variant, at_s;
