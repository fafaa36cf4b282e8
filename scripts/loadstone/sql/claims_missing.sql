-- One row per variant and rate: the number of planned runs, and of those without a result.
SELECT
    variant,
    rate,
    count(*) AS planned,
    count(*) FILTER (WHERE NOT collected) AS missing
FROM planned
GROUP BY variant, rate
ORDER BY rate, variant
