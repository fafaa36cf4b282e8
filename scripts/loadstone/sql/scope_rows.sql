-- One row per row of $table with the scope of a page: a campaign ($comparison NULL) or a comparison.
SELECT *
FROM query_table($table)
WHERE comparison IS NOT DISTINCT FROM $comparison
