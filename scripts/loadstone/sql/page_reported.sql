-- One row per run, with what its tool reported of its main stream, as far as it did; never more than one run.
-- `shown`: its figures are its tool's own, or its tool is none of those that this project itself counts requests of
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
