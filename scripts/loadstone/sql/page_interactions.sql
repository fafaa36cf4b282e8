-- One row per load, square of variants, way of measuring and statistic of one scope (as in page_effects.sql): what two
-- layers together add beyond the sum of what each adds alone.
SELECT *
FROM interactions
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY rate, load_model, generator, bottom, top, statistic;
