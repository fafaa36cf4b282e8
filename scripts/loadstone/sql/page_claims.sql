-- One row per weakness of what is concluded from one scope (as in page_effects.sql), in the order of table claims:
-- heaviest first.
SELECT claim, weight, rate, variant, statistic, n, n_of, counted, text, remedy, cells
FROM claims
WHERE comparison IS NOT DISTINCT FROM $comparison;
