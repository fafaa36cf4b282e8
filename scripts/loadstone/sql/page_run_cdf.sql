-- One row per run at one rate (from page_requests, test phase): latencies_ns are the latencies of existing requests
-- that the given $shares of the run's requests do not exceed (the empirical distribution, cut to len($shares) steps).
SELECT variant, variant_dir, run, quantile_disc(latency_ns, $shares) AS latencies_ns
FROM page_requests
WHERE phase = 'test'
GROUP BY variant, variant_dir, run
ORDER BY variant, variant_dir, run;
