-- All rows of the table $name, in a fixed order.
SELECT *
FROM query_table($name)
ORDER BY ALL
