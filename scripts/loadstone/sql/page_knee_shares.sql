-- One row per variant, way of measuring, share of the knee and statistic of one scope (as in page_effects.sql), where
-- the latency there is known.
SELECT *
FROM knee_shares
WHERE comparison IS NOT DISTINCT FROM $comparison AND value_ns IS NOT NULL
ORDER BY share, statistic, load_model, generator, variant;
