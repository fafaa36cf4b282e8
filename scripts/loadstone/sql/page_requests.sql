-- Creates page_requests, one row per measured request (of measured_requests.sql, in $files) of the main stream at some
-- rates ($rates), excluded runs included, with the few columns that page_run_*.sql aggregate. So requests are read only
-- once.
CREATE OR REPLACE TEMP TABLE page_requests AS
SELECT rate, variant, variant_dir, run, seq, latency_ns, error_class IS NOT NULL AS failed
FROM measured_requests($files, with_excluded := true)
WHERE rate IN (SELECT unnest($rates)) AND stream = 'main';
