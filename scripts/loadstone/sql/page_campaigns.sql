-- One row per campaign in the tables: its contents, for the start page.
-- planned and planned_collected are NULL for campaigns whose plan was not recorded. Lists are without NULL; DuckDB plans
-- list_distinct in less time than DISTINCT.
WITH places AS (
    SELECT app, host, timestamp, variant, rate, collected, TRUE AS is_planned FROM planned
    UNION ALL BY NAME
    SELECT
        app, host, timestamp, variant, rate, excluded, requests, load_model, generator, resolution_ns, duration_s
    FROM runs
)
SELECT
    app, host, timestamp,
    list_sort(list_distinct(list(variant))) AS variants,
    list_sort(list_distinct(list(rate))) AS rates,
    nullif(count(is_planned), 0) AS planned,
    CASE WHEN count(is_planned) > 0 THEN count(*) FILTER (WHERE collected) END AS planned_collected,
    count(*) - count(is_planned) AS n_runs,
    count(*) FILTER (WHERE excluded) AS n_excluded,
    coalesce(sum(requests), 0)::BIGINT AS n_requests,
    list_sort(list_distinct(list(load_model))) AS load_models,
    list_sort(list_distinct(list(generator))) AS generators,
    min(resolution_ns) AS resolution_ns,
    avg(duration_s) AS run_s
FROM places
GROUP BY ALL
ORDER BY app, host, timestamp;
