-- One row per campaign, rate and variant that lacks planned runs; runs are the numbers of those.
SELECT app, host, timestamp, rate, variant, list_sort(list(run)) AS runs
FROM planned
WHERE NOT collected
GROUP BY ALL
ORDER BY app, host, timestamp, rate, variant;
