-- A row is what the tool itself reported of one run's stream.
SELECT variant_dir, rate, run, requests, started_at, mean_ns, 1 - success AS failed_share
FROM summaries
WHERE stream = $stream AND preferred
