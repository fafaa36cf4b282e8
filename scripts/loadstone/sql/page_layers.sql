-- One row per load, layer, way of measuring and statistic of one scope (as in page_effects.sql): what a variant adds to
-- the one that it is built upon.
SELECT *
FROM layers
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY rate, load_model, generator, below, variant, statistic;
