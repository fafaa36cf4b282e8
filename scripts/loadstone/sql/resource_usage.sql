-- One row per run and part of its target: minimum, mean and maximum usage over the samples during the test.
--
-- scope, name:  a namespace (the sum of its pods in each round of samples), a process with its children, or a node. The
--               load generator is the process named generator, and its machine the node named generator
-- TOTAL:        of scope total: the sum of each column over the run's namespaces and processes, without the generator.
--               The sum of the minima is not the minimum of the sum, which cannot be known: namespaces are sampled at
--               different times
-- n_samples:    rounds with a sample; for TOTAL the smallest number of any part
-- parts_min, parts_max: the number of pods in a round. A figure of a round is NULL if one of its pods has none
--
-- Sums of decimals are in a fixed order, so that the same data give the same figures to the last digit.
CREATE VIEW resource_usage AS
WITH
placed AS (
    SELECT
        app, host, timestamp, variant, rate, run, variant_dir,
        if(scope = 'pod', 'namespace', scope) AS scope,
        if(scope = 'pod', split_part(name, '/', 1), name) AS name,
        resources.name AS part,
        coalesce(asked_at, sampled_at) AS asked_at,
        cpu_millicores,
        memory_mib
    FROM resources
),

rounds AS (
    SELECT
        app, host, timestamp, variant, rate, run, variant_dir, scope, name, asked_at,
        count(*) AS parts,
        if(count(cpu_millicores) = count(*), sum(cpu_millicores ORDER BY part, cpu_millicores), NULL) AS cpu_millicores,
        if(count(memory_mib) = count(*), sum(memory_mib ORDER BY part, memory_mib), NULL) AS memory_mib
    FROM placed
    GROUP BY ALL
),

used AS (
    SELECT
        app, host, timestamp, variant, rate, run, variant_dir, scope, name,
        count(*) AS n_samples,
        min(parts) AS parts_min,
        max(parts) AS parts_max,
        min(cpu_millicores) AS cpu_min_millicores,
        avg(cpu_millicores ORDER BY asked_at) AS cpu_mean_millicores,
        max(cpu_millicores) AS cpu_max_millicores,
        min(memory_mib) AS memory_min_mib,
        avg(memory_mib ORDER BY asked_at) AS memory_mean_mib,
        max(memory_mib) AS memory_max_mib
    FROM rounds
    GROUP BY ALL
),

total AS (
    SELECT
        app, host, timestamp, variant, rate, run, variant_dir,
        'total' AS scope,
        'TOTAL' AS name,
        min(n_samples) AS n_samples,
        sum(parts_min)::BIGINT AS parts_min,
        sum(parts_max)::BIGINT AS parts_max,
        sum(cpu_min_millicores ORDER BY scope, name) AS cpu_min_millicores,
        sum(cpu_mean_millicores ORDER BY scope, name) AS cpu_mean_millicores,
        sum(cpu_max_millicores ORDER BY scope, name) AS cpu_max_millicores,
        sum(memory_min_mib ORDER BY scope, name) AS memory_min_mib,
        sum(memory_mean_mib ORDER BY scope, name) AS memory_mean_mib,
        sum(memory_max_mib ORDER BY scope, name) AS memory_max_mib
    FROM used
    WHERE scope = 'namespace' OR (scope = 'process' AND name <> 'generator')
    GROUP BY ALL
)

SELECT * FROM used
UNION ALL BY NAME
SELECT * FROM total
