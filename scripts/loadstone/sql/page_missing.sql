-- One row per campaign, rate and variant with missing runs; runs are their numbers.
SELECT app, host, timestamp, rate, variant, list_sort(list(run)) AS runs
FROM planned
WHERE NOT collected
GROUP BY ALL
ORDER BY app, host, timestamp, rate, variant;
