-- Creates page_requests, one row per request (of measured_requests.sql, in $files) of the main stream at some rates
-- ($rates), including warm-ups and excluded runs, with the few columns that the page_*.sql of single rates aggregate.
-- So requests are read only once.
--
-- since_start_ns: since the first request of the run's test phase, negative in the warm-up; null if the tool records no
-- times, or the clock was set back during the run.
CREATE OR REPLACE TEMP TABLE page_requests AS
WITH
chosen AS (
    SELECT rate, variant, variant_dir, run, phase, measured, seq, latency_ns, code, error_class, timed_out, sent_ns, excluded, clock_set_back_s
    FROM sent_requests($files)
    WHERE rate IN (SELECT unnest($rates)) AND stream = 'main'
),
starts AS (
    SELECT rate, variant, variant_dir, run, min(sent_ns) AS start_ns
    FROM chosen
    WHERE measured
    GROUP BY ALL
)
SELECT
    rate, variant, variant_dir, run, phase, measured, seq, latency_ns,
    error_class IS NOT NULL AS failed,
    code IS NOT NULL AS has_code,
    timed_out,
    if(clock_set_back_s IS NULL, sent_ns - start_ns, NULL) AS since_start_ns,
    excluded
FROM chosen
JOIN starts USING (rate, variant, variant_dir, run);
