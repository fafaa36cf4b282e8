-- One row per run with at most $points requests (measured requests of page_requests): every request, in order.
SELECT
    rate, variant, variant_dir, run,
    list(seq ORDER BY seq) AS seqs,
    list(latency_ns ORDER BY seq) AS latencies_ns,
    coalesce(list(seq ORDER BY seq) FILTER (WHERE failed), []) AS failed_seqs
FROM page_requests
GROUP BY rate, variant, variant_dir, run
HAVING count(*) <= $points
ORDER BY rate, variant, variant_dir, run;
