-- One row per run with incidents at its target, the first $shown, the worst first: the number of incidents of each
-- kind, the first $each incidents, and whether the run is excluded. $doubtful are the kinds that put a run's figures in
-- doubt, the worst first; is_doubtful: whether any of them happened. suggested: the tag suggested for the run. n_runs,
-- n_doubtful and n_doubtful_valid are the numbers of all such runs.
WITH
placed AS (
    SELECT
        *,
        coalesce(list_position($doubtful, kind), len($doubtful) + if(kind = 'more', 2, 1)) AS severity
    FROM incidents
),

kinds AS (
    SELECT rate, variant, variant_dir, run, kind, severity, sum(count)::BIGINT AS n
    FROM placed
    GROUP BY ALL
),

summed AS (
    SELECT
        rate, variant, variant_dir, run,
        min(severity) AS worst,
        list({'kind': kind, 'n': n} ORDER BY severity, kind)[1:$each] AS kinds
    FROM kinds
    GROUP BY ALL
),

listed AS (
    SELECT
        rate, variant, variant_dir, run,
        count(*) AS n_incidents,
        list(
            {'kind': kind, 'object': object, 'container': container, 'reason': reason, 'text': text, 'count': count}
            ORDER BY severity, kind, count DESC, object, container, reason, text
        )[1:$each] AS incidents
    FROM placed
    GROUP BY ALL
),

proposed AS (
    SELECT rate, variant, run, any_value(tag) AS tag
    FROM suggestions
    WHERE kind = 'target problem' AND NOT tagged
    GROUP BY ALL
)

SELECT
    rate, variant, variant_dir, run, kinds, n_incidents, incidents, excluded, exclusion_reason, tags,
    worst,
    worst <= len($doubtful) AS is_doubtful,
    if(worst <= len($doubtful), coalesce(of_run.tag, of_cell.tag), NULL) AS suggested,
    count(*) OVER () AS n_runs,
    count(*) FILTER (WHERE worst <= len($doubtful)) OVER () AS n_doubtful,
    count(*) FILTER (WHERE worst <= len($doubtful) AND NOT excluded) OVER () AS n_doubtful_valid
FROM summed
JOIN listed USING (rate, variant, variant_dir, run)
LEFT JOIN (SELECT rate, variant, variant_dir, run, excluded, exclusion_reason, tags FROM runs)
    USING (rate, variant, variant_dir, run)
LEFT JOIN proposed AS of_run USING (rate, variant, run)
LEFT JOIN (SELECT rate, variant, tag FROM proposed WHERE run IS NULL) AS of_cell USING (rate, variant)
ORDER BY worst, rate, variant, variant_dir, run
LIMIT $shown;
