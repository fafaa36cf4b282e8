-- A row is one variant at a rate: its planned runs, and those of them that have no result.
SELECT
    variant,
    rate,
    count(*) AS planned,
    count(*) FILTER (WHERE NOT collected) AS missing
FROM planned
GROUP BY variant, rate
ORDER BY rate, variant
