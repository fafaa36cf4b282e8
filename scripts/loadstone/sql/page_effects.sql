-- One row per load, variant, way of measuring and statistic of one scope: the campaign asked about ($comparison NULL)
-- or a comparison. A variant beside the baseline, as table effects holds it.
SELECT *
FROM effects
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY rate, load_model, generator, variant, statistic;
