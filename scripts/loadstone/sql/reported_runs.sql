-- One row per run: what the tool reported of one of its streams.
SELECT variant_dir, rate, run, requests, started_at, mean_ns, 1 - success AS failed_share
FROM summaries
WHERE stream = $stream AND preferred
