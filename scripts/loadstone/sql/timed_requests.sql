-- Creates timed_requests, one row per measured request (of measured_requests.sql, in $files) of the main stream of valid
-- runs at some rates ($rates), with the few columns that time_bins.sql and percentile_curves.sql aggregate. So requests
-- are read only once. $every_phase: warm-ups too.
--
-- since_ns: since the run's first measured request, negative in a warm-up; null if the tool records no times, or the
--           clock was set back.
CREATE OR REPLACE TEMP TABLE timed_requests AS
WITH chosen AS (
    SELECT
        series, pool, chart, rate, variant, phase, measured, timed_out, latency_ns,
        if(clock_set_back_s IS NULL, sent_ns, NULL) AS sent_ns
    FROM measured_requests($files, every_phase := $every_phase)
    WHERE rate IN (SELECT unnest($rates)) AND stream = 'main'
),

starts AS (
    SELECT series, min(sent_ns) FILTER (WHERE measured) AS start_ns
    FROM chosen
    GROUP BY series
)

SELECT series, pool, chart, rate, variant, phase, timed_out, latency_ns, sent_ns - start_ns AS since_ns
FROM chosen
JOIN starts USING (series);
