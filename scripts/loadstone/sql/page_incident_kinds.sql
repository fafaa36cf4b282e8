-- One row per kind of incident, the first $shown, those in $doubtful first, in their order, then by name: the number of
-- incidents, of affected runs, and of valid ones among these.
SELECT
    kind,
    sum(count)::BIGINT AS n,
    count(DISTINCT (rate, variant_dir, run)) AS n_runs,
    count(DISTINCT (rate, variant_dir, run)) FILTER (WHERE NOT excluded) AS n_valid
FROM incidents
LEFT JOIN (SELECT rate, variant, variant_dir, run, excluded FROM runs) USING (rate, variant, variant_dir, run)
GROUP BY kind
ORDER BY coalesce(list_position($doubtful, kind), len($doubtful) + 1), kind
LIMIT $shown;
