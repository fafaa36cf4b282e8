-- A row is what one part of a target used in one run: least, mean and most over its samples during the test.
--
-- scope, name:  a namespace (the sum of its pods in each round of samples), a process with its children, or node; the
--               load generator is the process, and its machine the node, of the name generator
-- TOTAL:        of scope total: the sum of each column over the run's namespaces and processes but the generator; the
--               sum of the least is not the least sum, which the rounds of several namespaces could not tell
-- n_samples:    rounds with a sample; of TOTAL the fewest of any part
-- What has decimals is summed up in one order, so that the same data give the same figures to the last digit.
-- parts_min, parts_max: how many pods there were in a round; a figure of a round is NULL where one of them has none
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
