-- One row per load, variant and way of measuring of one scope: the campaign asked about ($comparison NULL) or a
-- comparison. Percentiles of its pooled requests, as table percentile_curves holds them.
SELECT *
FROM percentile_curves
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY rate, load_model, generator, variant;
