-- One row per run at one rate (measured requests of page_requests): latencies_ns are its percentiles at the given $shares,
-- by linear interpolation like every percentile here: the empirical distribution at len($shares) points.
SELECT variant, variant_dir, run, quantile_cont(latency_ns, $shares) AS latencies_ns
FROM page_requests
WHERE measured
GROUP BY variant, variant_dir, run
ORDER BY variant, variant_dir, run;
