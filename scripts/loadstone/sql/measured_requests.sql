-- The relation that every latency figure of tables and pages is computed from: one row per measured request of valid
-- runs, with the columns of table requests. It reads the Parquet files `files`.
-- Table `selected_runs` has the runs (host, timestamp, rate, variant_dir, run), and for each timeout_s, excluded
-- and its numbers in a query: series (its own) and pool (of the runs whose requests are pooled).
--
-- every_phase:   warm-ups and all other phases too; `measured` marks the measured phase
-- with_excluded: requests of excluded runs too, for figures of single runs and for table cells_all
--
-- latency_ns: of a request that timed out at least the timeout, since some tools record 0 or a shorter time. written_ns
--             is the tool's value
-- sent_ns:    when it was sent: since 1970, or since the start of the run if the tool records no time of day; null if
--             it records neither
CREATE MACRO measured_requests(files, every_phase := false, with_excluded := false) AS TABLE
SELECT
    requests.* REPLACE (
        if(
            requests.error_class = 'timeout',
            greatest(requests.latency_ns, coalesce(round(selected_runs.timeout_s * 1e9)::BIGINT, 0)),
            requests.latency_ns
        ) AS latency_ns
    ),
    requests.latency_ns AS written_ns,
    coalesce(epoch_ns(requests.sent_at), requests.offset_ns) AS sent_ns,
    requests.phase = 'test' AS measured,
    requests.code IN (200, 0, 101) AND requests.error_class IS NULL AS ok,
    coalesce(requests.error_class = 'timeout', false) AS timed_out,
    selected_runs.series,
    selected_runs.pool
FROM read_parquet(files, hive_partitioning = false) AS requests
JOIN selected_runs USING (host, timestamp, rate, variant_dir, run)
WHERE (measured OR every_phase) AND (NOT selected_runs.excluded OR with_excluded);
