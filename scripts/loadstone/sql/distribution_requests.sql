-- Creates distribution_requests, one row per measured request (of measured_requests.sql, in $files) of the main stream
-- of some runs of one variant at one rate, with the few columns that run_figures.sql, time_bins.sql and
-- percentile_curves.sql aggregate. So requests are read only once.
--
-- since_ns: since the run's first measured request; null if the tool records no times, or the clock was set back.
CREATE OR REPLACE TEMP TABLE distribution_requests AS
WITH chosen AS (
    SELECT
        series, excluded, ok, timed_out, latency_ns,
        if(clock_set_back_s IS NULL, sent_ns, NULL) AS sent_ns
    FROM measured_requests($files)
    WHERE stream = 'main'
),

starts AS (
    SELECT series, min(sent_ns) AS start_ns
    FROM chosen
    GROUP BY series
)

SELECT series, excluded, ok, timed_out, latency_ns, sent_ns - start_ns AS since_ns
FROM chosen
JOIN starts USING (series);
