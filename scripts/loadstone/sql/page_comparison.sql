-- One row per load and variant of one comparison ($comparison), as table comparisons holds it.
SELECT *
FROM comparisons
WHERE comparison = $comparison
ORDER BY rate, variant;
