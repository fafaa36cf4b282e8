-- One row per kind of incident, the first $shown, as $doubtful has them and then by name: how many there were, in how many
-- runs, and how many of these runs count.
SELECT
    kind,
    sum(count)::BIGINT AS n,
    count(DISTINCT (rate, variant_dir, run)) AS n_runs,
    count(DISTINCT (rate, variant_dir, run)) FILTER (WHERE NOT excluded) AS n_counting
FROM incidents
LEFT JOIN (SELECT rate, variant, variant_dir, run, excluded FROM runs) USING (rate, variant, variant_dir, run)
GROUP BY kind
ORDER BY coalesce(list_position($doubtful, kind), len($doubtful) + 1), kind
LIMIT $shown;
