-- One row per run at one rate (from page_requests, test phase): latencies_ns are its percentiles at the given $shares,
-- by linear interpolation like every percentile here: the empirical distribution at len($shares) points.
SELECT variant, variant_dir, run, quantile_cont(latency_ns, $shares) AS latencies_ns
FROM page_requests
WHERE phase = 'test'
GROUP BY variant, variant_dir, run
ORDER BY variant, variant_dir, run;
