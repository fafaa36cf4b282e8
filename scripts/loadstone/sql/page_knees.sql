-- One row per variant and way of measuring of one scope (as in page_effects.sql): the load that it carries.
SELECT *
FROM knees
WHERE comparison IS NOT DISTINCT FROM $comparison
ORDER BY load_model, generator, variant;
