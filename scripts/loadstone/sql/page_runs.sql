-- One row per run, including excluded runs: what the campaign page shows of each.
SELECT
    rate, variant, variant_dir, run, load_model, generator, metadata_version, evidence, duration_s,
    warmup_rate, replicas, labels, requests, resolution_ns, expected_requests, complete, part, tags, excluded, exclusion_reason, exclusions, problems
FROM runs
ORDER BY rate, variant, variant_dir, run;
