-- One row per campaign in the tables: its contents, for the start page.
-- planned and planned_collected are NULL for campaigns whose plan was not recorded.
WITH
plan AS (
    SELECT app, host, timestamp, count(*) AS planned, count(*) FILTER (WHERE collected) AS planned_collected
    FROM planned
    GROUP BY ALL
),
held AS (
    SELECT
        app, host, timestamp,
        count(*) AS n_runs,
        count(*) FILTER (WHERE excluded) AS n_excluded,
        coalesce(sum(requests), 0)::BIGINT AS n_requests,
        list_sort(list(DISTINCT load_model) FILTER (WHERE load_model IS NOT NULL)) AS load_models,
        list_sort(list(DISTINCT generator) FILTER (WHERE generator IS NOT NULL)) AS generators,
        min(resolution_ns) AS resolution_ns,
        avg(duration_s) AS run_s
    FROM runs
    GROUP BY ALL
),
places AS (
    SELECT app, host, timestamp, variant, rate FROM planned
    UNION
    SELECT app, host, timestamp, variant, rate FROM runs
),
extent AS (
    SELECT
        app, host, timestamp,
        list_sort(list(DISTINCT variant)) AS variants,
        list_sort(list(DISTINCT rate)) AS rates
    FROM places
    GROUP BY ALL
)
SELECT
    app, host, timestamp, variants, rates, planned, planned_collected,
    coalesce(n_runs, 0) AS n_runs,
    coalesce(n_excluded, 0) AS n_excluded,
    coalesce(n_requests, 0) AS n_requests,
    coalesce(load_models, []) AS load_models,
    coalesce(generators, []) AS generators,
    resolution_ns, run_s
FROM extent
LEFT JOIN plan USING (app, host, timestamp)
LEFT JOIN held USING (app, host, timestamp)
ORDER BY app, host, timestamp;
