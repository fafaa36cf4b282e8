-- One row per valid run and upper bound of its tool's histogram of the main stream: the number of requests that took at
-- most that long, and of all requests. At most $shown bounds per run, ending with the highest percentiles.
WITH
cumulated AS (
    SELECT
        host, timestamp, rate, variant, variant_dir, run, upper_ns,
        sum("count") OVER bins AS up_to,
        sum("count") OVER (PARTITION BY host, timestamp, rate, variant_dir, run, source) AS total,
        row_number() OVER (PARTITION BY host, timestamp, rate, variant_dir, run, source ORDER BY upper_ns DESC) AS nth
    FROM histograms
    WHERE stream = 'main'
    WINDOW bins AS (PARTITION BY host, timestamp, rate, variant_dir, run, source ORDER BY upper_ns)
)
SELECT host, timestamp, rate, variant, variant_dir, run, upper_ns, up_to::DOUBLE AS up_to, total::DOUBLE AS total
FROM cumulated
SEMI JOIN (SELECT * FROM runs WHERE NOT excluded) USING (host, timestamp, rate, variant_dir, run)
WHERE nth <= $shown
ORDER BY rate, variant, host, timestamp, variant_dir, run, upper_ns;
