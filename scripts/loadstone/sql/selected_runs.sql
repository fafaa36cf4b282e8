-- Creates selected_runs, the runs of measured_requests.sql: all runs of table runs, including excluded ones.
CREATE OR REPLACE TEMP VIEW selected_runs AS
SELECT
    row_number() OVER (ORDER BY rate, variant, host, timestamp, variant_dir, run) - 1 AS series,
    dense_rank() OVER (ORDER BY rate, variant) - 1 AS pool,
    host, timestamp, rate, variant_dir, run, timeout_s, excluded
FROM runs
