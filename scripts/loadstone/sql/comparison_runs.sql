-- A row is one run of a comparison's campaigns, excluded ones too, of variants and loads that nobody asked for as well.
SELECT
    app, host, timestamp, variant, rate, run, variant_dir,
    load_model, evidence, requests, excluded, exclusion_reason, source
FROM runs
ORDER BY rate, variant, host, timestamp, variant_dir, run
