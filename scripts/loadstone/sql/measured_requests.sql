-- The requests that latency figures are made from, for every table and page. Both are macros: `files` are the Parquet
-- files to read, and the table `selected_runs` names the runs (host, timestamp, rate, variant_dir, run) with what is known
-- of each: its number in a query (series), timeout_s, clock_set_back_s and whether it is excluded.
--
-- sent_requests:     every request of these runs, warm-ups and side streams too, with columns of table requests
-- measured_requests: those of the measured phase, where `measured`
--
-- latency_ns: of a request that timed out what it took at least, which is the time limit: some tools write 0 there, or
--             what came before it. written_ns is what the tool wrote
-- sent_ns:    when it was sent: since 1970, or since the run's start where the tool gives no time of day; null where it
--             gives neither
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
    requests.code = 200 AS ok,
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
