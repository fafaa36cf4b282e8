-- One row per load, variant, way of measuring and bin of time of one scope: the campaign asked about ($comparison NULL)
-- or a comparison, as table time_bins holds it.
SELECT *
FROM time_bins
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY rate, load_model, generator, variant, from_s;
