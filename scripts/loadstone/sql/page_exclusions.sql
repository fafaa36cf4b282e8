-- One row per campaign and reason: the runs that every statistic leaves out. examples names the first few of them;
-- shown says of each whether it left requests, so that its campaign's page can show it alone.
SELECT
    app, host, timestamp,
    coalesce(exclusion_reason, 'no reason recorded') AS reason,
    count(*) AS n_runs,
    list(
        {'rate': rate, 'variant': variant, 'run': run, 'shown': evidence = 'raw' AND coalesce(requests, 0) > 0}
        ORDER BY rate, variant, run
    )[1:$shown] AS examples
FROM runs
WHERE excluded
GROUP BY ALL
ORDER BY app, host, timestamp, n_runs DESC, reason;
