-- One row per run without a summary: what a summary would report, computed from the measured requests of its main
-- stream.
-- Requests are those of measured_requests.sql, in $files. Success is as in table run_figures. status_codes leaves out codes of
-- success other than HTTP's, such as 0 of gRPC, which mean an error there.
WITH tested AS (
    SELECT app, host, timestamp, variant_dir, rate, run, latency_ns, code, error_class
    FROM measured_requests($files)
    WHERE stream = 'main'
)

SELECT
    app, host, timestamp, variant_dir, rate, run,
    avg(latency_ns) AS mean_ns,
    count(code) FILTER (WHERE error_class IS NULL) / nullif(count(code), 0) AS success,
    count(*) AS requests,
    map_from_entries(
        map_entries(histogram(code::VARCHAR) FILTER (WHERE error_class IS NOT NULL OR code BETWEEN 200 AND 399))
    ) AS status_codes
FROM tested
GROUP BY app, host, timestamp, variant_dir, rate, run
