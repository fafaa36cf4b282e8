-- One row per campaign and reason (codes with values): the excluded runs. examples names the first few; `shown` is true
-- for those with single requests, which the campaign's page can show in the run inspector.
SELECT
    app, host, timestamp,
    coalesce(any_value(exclusion_reason), 'no reason recorded') AS reason,
    count(*) AS n_runs,
    list(
        {'rate': rate, 'variant': variant, 'run': run, 'shown': evidence = 'raw' AND coalesce(requests, 0) > 0}
        ORDER BY rate, variant, run
    )[1:$shown] AS examples
FROM runs
WHERE excluded
GROUP BY app, host, timestamp, exclusions
ORDER BY app, host, timestamp, n_runs DESC, reason;
