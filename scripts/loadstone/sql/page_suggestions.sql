-- One row per suggested tag that is not applied, the first $shown of each campaign; n_suggestions is the number of all.
SELECT
    app, host, timestamp, rate, variant, run, kind, tag, evidence, lines,
    count(*) OVER (PARTITION BY app, host, timestamp) AS n_suggestions
FROM suggestions
WHERE NOT tagged
QUALIFY row_number() OVER (
    PARTITION BY app, host, timestamp ORDER BY rate NULLS FIRST, variant, run, kind
) <= $shown
ORDER BY app, host, timestamp, rate NULLS FIRST, variant, run, kind;
