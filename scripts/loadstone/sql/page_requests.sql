-- Makes page_requests, one row per request of the main stream at one rate ($rate), left-out runs too: the narrow
-- columns that the other page_*.sql of one rate aggregate, so that the raw table is read once per rate.
-- since_start_ns counts from the first request of the run's test phase; the warm-up has negative values. Where the tool
-- gave no time of day it told the time since the run's start, and it may have told neither. Null where the clock was set
-- back during the run.
CREATE OR REPLACE TEMP TABLE page_requests AS
WITH
chosen AS (
    SELECT variant, variant_dir, run, phase, seq, latency_ns, code, error_class, coalesce(epoch_ns(sent_at), offset_ns) AS sent_ns
    FROM requests
    WHERE rate = $rate AND stream = 'main'
),
starts AS (
    SELECT variant, variant_dir, run, min(sent_ns) AS start_ns
    FROM chosen
    WHERE phase = 'test'
    GROUP BY ALL
)
SELECT
    variant, variant_dir, run, phase, seq, latency_ns,
    error_class IS NOT NULL AS failed,
    code IS NOT NULL AS told,
    if(clock_set_back_s IS NULL, sent_ns - start_ns, NULL) AS since_start_ns,
    excluded
FROM chosen
JOIN starts USING (variant, variant_dir, run)
JOIN (SELECT variant, variant_dir, run, excluded, clock_set_back_s FROM runs WHERE rate = $rate) USING (variant, variant_dir, run);
