-- One row per bin of consecutive requests, $bins bins per run, for runs with more than $points requests
-- (measured requests of page_requests): the spread of latency in the bin and the number of failed requests.
WITH
extents AS (
    SELECT rate, variant, variant_dir, run, min(seq) AS first_seq, max(seq) - min(seq) + 1 AS span
    FROM page_requests
    GROUP BY rate, variant, variant_dir, run
    HAVING count(*) > $points
)
SELECT
    rate, variant, variant_dir, run,
    (seq - extents.first_seq) * $bins // span AS bin,
    min(seq) AS first_seq,
    max(seq) AS last_seq,
    count(*) AS n_requests,
    count(*) FILTER (WHERE failed) AS n_failed,
    min(latency_ns) AS min_ns,
    quantile_cont(latency_ns, 0.5) AS p50_ns,
    quantile_cont(latency_ns, 0.99) AS p99_ns,
    max(latency_ns) AS max_ns
FROM page_requests
JOIN extents USING (rate, variant, variant_dir, run)
GROUP BY rate, variant, variant_dir, run, bin
ORDER BY rate, variant, variant_dir, run, bin;
