-- One row per run without a summary: what a summary would report, computed from the measured requests of its main
-- stream.
-- Requests are those of measured_requests.sql, in $files.
WITH tested AS (
    SELECT app, host, timestamp, variant_dir, rate, run, latency_ns, code
    FROM measured_requests($files)
    WHERE stream = 'main'
)

SELECT
    app, host, timestamp, variant_dir, rate, run,
    avg(latency_ns) AS mean_ns,
    count(*) FILTER (WHERE code >= 200 AND code < 400) / nullif(count(code), 0) AS success,
    count(*) AS requests,
    map_from_entries(map_entries(histogram(code::VARCHAR))) AS status_codes
FROM tested
GROUP BY app, host, timestamp, variant_dir, rate, run
