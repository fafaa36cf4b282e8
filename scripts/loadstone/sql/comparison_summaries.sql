-- One row per series of a comparison (a variant at one load, measured in one way) by the method "vegeta-summaries": the
-- report of each run gives one value; mean and standard deviation (ddof 0) are over runs, with equal weights in all
-- campaigns. It is the only latency figure that reports give although there are requests, because older publications
-- used it; all other columns of a comparison are of requests.
--
-- `valid_runs` (app, host, timestamp, rate, variant_dir, run, series) selects the runs. `derived` has rows like those
-- of `summaries`, of the requests of runs without one; it is empty unless the comparison allows `evidence`.
-- error_fraction is 1 - success, and success covers codes 200 to 399. The other fractions are of code 503, code 0 (no
-- complete answer), and all codes but 200, 503 and 0, so they need not add up to it. They are null for reports without
-- codes.
-- Sums over runs are in a fixed order, so that the same data give the same figures to the last digit.
WITH reported AS (
    SELECT app, host, timestamp, variant_dir, rate, run, mean_ns, success, requests, status_codes
    FROM summaries
    WHERE stream = 'main' AND preferred
    UNION ALL BY NAME
    SELECT app, host, timestamp, variant_dir, rate, run, mean_ns, success, requests, status_codes
    FROM derived
),

per_run AS (
    SELECT
        series, host, timestamp, variant_dir, run,
        mean_ns,
        1 - success AS failed,
        coalesce(status_codes['503'], 0) AS code_503,
        coalesce(status_codes['0'], 0) AS code_0,
        coalesce(list_sum(map_values(status_codes)), 0) - coalesce(status_codes['200'], 0) AS not_200,
        CASE WHEN cardinality(status_codes) > 0 THEN nullif(requests, 0) END AS requests
    FROM valid_runs
    JOIN reported USING (app, host, timestamp, variant_dir, rate, run)
)

SELECT
    series,
    count(mean_ns) AS vegeta_summaries_n_runs,
    avg(mean_ns ORDER BY host, timestamp, variant_dir, run) AS vegeta_summaries_mean_ns,
    stddev_pop(mean_ns ORDER BY host, timestamp, variant_dir, run) AS vegeta_summaries_std_ns,
    avg(failed ORDER BY host, timestamp, variant_dir, run) AS error_fraction,
    stddev_pop(failed ORDER BY host, timestamp, variant_dir, run) AS error_fraction_std,
    avg(code_503 / requests ORDER BY host, timestamp, variant_dir, run) AS error_503_fraction,
    stddev_pop(code_503 / requests ORDER BY host, timestamp, variant_dir, run) AS error_503_fraction_std,
    avg(code_0 / requests ORDER BY host, timestamp, variant_dir, run) AS error_0_fraction,
    stddev_pop(code_0 / requests ORDER BY host, timestamp, variant_dir, run) AS error_0_fraction_std,
    avg((not_200 - code_503 - code_0) / requests ORDER BY host, timestamp, variant_dir, run) AS error_other_fraction,
    stddev_pop((not_200 - code_503 - code_0) / requests ORDER BY host, timestamp, variant_dir, run) AS error_other_fraction_std
FROM per_run
GROUP BY series
ORDER BY series
