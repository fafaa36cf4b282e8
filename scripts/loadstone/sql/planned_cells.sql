-- One row per variant and rate of a campaign, planned or measured, and whether it has runs.
SELECT app, host, timestamp, variant, rate, bool_or(is_measured) AS is_measured
FROM (
    SELECT app, host, timestamp, variant, rate, TRUE AS is_measured FROM runs
    UNION ALL
    SELECT app, host, timestamp, variant, rate, FALSE AS is_measured FROM planned
)
GROUP BY ALL
ORDER BY ALL;
