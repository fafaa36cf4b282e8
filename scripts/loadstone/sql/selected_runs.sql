-- Makes selected_runs, the runs that measured_requests.sql is about: all of table runs, excluded ones too.
CREATE OR REPLACE TEMP VIEW selected_runs AS
SELECT
    row_number() OVER (ORDER BY rate, variant, host, timestamp, variant_dir, run) - 1 AS series,
    host, timestamp, rate, variant_dir, run, timeout_s, clock_set_back_s, excluded
FROM runs
