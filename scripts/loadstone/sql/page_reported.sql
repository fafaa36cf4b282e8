-- One row per run: what the tool reported of its main stream, if anything. Never over several runs.
-- `shown`: there are no single requests, or the tool is not one of those whose requests Loadstone records itself
-- (vegeta, serial).
SELECT
    host, timestamp, rate, variant, variant_dir, run, load_model, generator, evidence, duration_s, resolution_ns, users,
    labels, description, excluded, exclusion_reason,
    reported.source, reported.requests, success, mean_ns, min_ns, p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns,
    len(reported.problems) > 0 AS doubted,
    runs.evidence <> 'raw' OR coalesce(generator, '') NOT IN ('vegeta', 'serial') AS shown
FROM runs
LEFT JOIN (SELECT * FROM summaries WHERE stream = 'main' AND preferred) AS reported
    USING (app, host, timestamp, variant, rate, variant_dir, run)
ORDER BY rate, variant, host, timestamp, variant_dir, run;
