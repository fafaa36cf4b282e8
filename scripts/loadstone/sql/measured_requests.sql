-- Makes measured, one row per measured request of the main stream of some runs of one variant at one rate: the narrow
-- columns that run_figures.sql, time_bins.sql and percentile_curves.sql aggregate, so that requests are read once.
--
-- $files holds the requests; `pictured` (host, timestamp, variant_dir, run, series, timeout_ns, counts, is_timed) names the runs,
-- which `series` numbers.
-- latency_ns of a request that timed out is what it took at least. since_ns counts from the run's first measured request;
-- null where the tool tells no times, or the clock was set back (is_timed).
CREATE OR REPLACE TEMP TABLE measured AS
WITH chosen AS (
    SELECT
        pictured.series, pictured.counts,
        if(pictured.is_timed, coalesce(epoch_ns(requests.sent_at), requests.offset_ns), NULL) AS sent_ns,
        requests.code = 200 AS ok,
        coalesce(requests.error_class = 'timeout', false) AS timed_out,
        if(
            requests.error_class = 'timeout',
            greatest(requests.latency_ns, coalesce(pictured.timeout_ns, 0)),
            requests.latency_ns
        ) AS latency_ns
    FROM read_parquet($files, hive_partitioning = false) AS requests
    JOIN pictured USING (host, timestamp, variant_dir, run)
    WHERE requests.phase = 'test' AND requests.stream = 'main'
),

starts AS (
    SELECT series, min(sent_ns) AS start_ns
    FROM chosen
    GROUP BY series
)

SELECT series, counts, ok, timed_out, latency_ns, sent_ns - start_ns AS since_ns
FROM chosen
JOIN starts USING (series);
