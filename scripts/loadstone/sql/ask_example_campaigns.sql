-- Every campaign, its runs and those left out
SELECT
    app,
    host,
    timestamp,
    min(started_at) AS began,
    count(*) AS n_runs,
    count(*) FILTER (excluded) AS n_left_out,
    sum(requests) AS n_requests,
    list_sort(list(DISTINCT variant)) AS variants
FROM runs
GROUP BY app, host, timestamp
ORDER BY began DESC NULLS LAST, timestamp DESC, app, host
