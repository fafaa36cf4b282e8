-- The requests that all latency figures of tables and pages are computed from. Both macros read the Parquet files
-- `files`.
-- Table `selected_runs` has the runs (host, timestamp, rate, variant_dir, run), and for each its number in a query
-- (series), timeout_s, clock_set_back_s and excluded.
--
-- sent_requests:     every request of these runs, including warm-ups and side streams, with the columns of table
--                    requests
-- measured_requests: those of the measured phase (`measured`)
--
-- latency_ns: of a request that timed out at least the timeout, since some tools record 0 or a shorter time. written_ns
--             is the tool's value
-- sent_ns:    when it was sent: since 1970, or since the start of the run if the tool records no time of day; null if
--             it records neither
CREATE OR REPLACE TEMP MACRO sent_requests(files) AS TABLE
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
    selected_runs.excluded,
    selected_runs.clock_set_back_s
FROM read_parquet(files, hive_partitioning = false) AS requests
JOIN selected_runs USING (host, timestamp, rate, variant_dir, run);

CREATE OR REPLACE TEMP MACRO measured_requests(files) AS TABLE
SELECT *
FROM sent_requests(files)
WHERE measured;
