-- A row is one variant at one load of a comparison by the method "vegeta-summaries": what the tool reported of each run
-- is one value; mean and deviation (ddof 0) are over runs, all alike whichever campaign they belong to.
--
-- `counting` (app, host, timestamp, variant, rate, variant_dir, run) names the runs; `derived` holds rows as of
-- `summaries` for runs that have none, empty unless the comparison allows that.
-- error_fraction is 1 - success, where success counts codes 200 to 399; the others are of codes 503, 0 (no complete
-- answer) and all but 200, 503 and 0. So they need not add up.
WITH reported AS (
    SELECT app, host, timestamp, variant_dir, rate, run, mean_ns, success, requests, status_codes
    FROM summaries
    WHERE stream = 'main'
    UNION ALL BY NAME
    SELECT app, host, timestamp, variant_dir, rate, run, mean_ns, success, requests, status_codes
    FROM derived
),

per_run AS (
    SELECT
        counting.variant,
        counting.rate,
        mean_ns,
        1 - success AS failed,
        coalesce(status_codes['503'], 0) AS code_503,
        coalesce(status_codes['0'], 0) AS code_0,
        coalesce(list_sum(map_values(status_codes)), 0) - coalesce(status_codes['200'], 0) AS not_200,
        nullif(requests, 0) AS requests
    FROM counting
    JOIN reported USING (app, host, timestamp, variant_dir, rate, run)
)

SELECT
    variant,
    rate,
    count(mean_ns) AS vegeta_summaries_n_runs,
    avg(mean_ns) AS vegeta_summaries_mean_ns,
    stddev_pop(mean_ns) AS vegeta_summaries_std_ns,
    avg(failed) AS error_fraction,
    stddev_pop(failed) AS error_fraction_std,
    avg(code_503 / requests) AS error_503_fraction,
    stddev_pop(code_503 / requests) AS error_503_fraction_std,
    avg(code_0 / requests) AS error_0_fraction,
    stddev_pop(code_0 / requests) AS error_0_fraction_std,
    avg((not_200 - code_503 - code_0) / requests) AS error_other_fraction,
    stddev_pop((not_200 - code_503 - code_0) / requests) AS error_other_fraction_std
FROM per_run
GROUP BY variant, rate
ORDER BY rate, variant
