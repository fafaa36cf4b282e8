-- One row per cell (campaign, rate, variant): the state of each planned or existing run. runs is a list of {run, state,
-- variant_dir}; state is
--   collected   it has a result, which is valid
--   suggested   the same, but a tag is suggested for it or for its cell
--   excluded    it has a result, which is excluded from statistics
--   failed      it was attempted and has no result
--   missing     it was planned and never attempted
WITH
tried AS (
    SELECT DISTINCT app, host, timestamp, rate, variant_dir, run, TRUE AS tried
    FROM failures
    WHERE NOT collected
),
of_runs AS (
    SELECT DISTINCT app, host, timestamp, rate, variant, run, TRUE AS proposed
    FROM suggestions
    WHERE NOT tagged AND run IS NOT NULL
),
of_cells AS (
    SELECT DISTINCT app, host, timestamp, rate, variant, TRUE AS proposed
    FROM suggestions
    WHERE NOT tagged AND run IS NULL AND rate IS NOT NULL
),
held AS (
    SELECT app, host, timestamp, rate, variant, variant_dir, run, excluded, TRUE AS held FROM runs
),
found AS (
    SELECT
        app, host, timestamp, rate, variant, variant_dir, run,
        CASE
            WHEN excluded THEN 'excluded'
            WHEN held AND (of_runs.proposed OR of_cells.proposed) THEN 'suggested'
            WHEN held OR collected THEN 'collected'
            WHEN tried THEN 'failed'
            ELSE 'missing'
        END AS state
    FROM held
    FULL JOIN planned USING (app, host, timestamp, rate, variant, variant_dir, run)
    LEFT JOIN tried USING (app, host, timestamp, rate, variant_dir, run)
    LEFT JOIN of_runs USING (app, host, timestamp, rate, variant, run)
    LEFT JOIN of_cells USING (app, host, timestamp, rate, variant)
)
SELECT
    app, host, timestamp, rate, variant,
    list({'run': run, 'state': state, 'variant_dir': variant_dir} ORDER BY run, variant_dir) AS runs
FROM found
GROUP BY ALL
ORDER BY app, host, timestamp, rate, variant;
