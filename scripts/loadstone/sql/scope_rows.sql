-- A row is a row of $table, one of those about a scope: the campaign asked about ($comparison NULL) or a comparison.
SELECT *
FROM query_table($table)
WHERE comparison IS NOT DISTINCT FROM $comparison
