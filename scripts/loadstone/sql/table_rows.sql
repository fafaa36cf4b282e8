-- A row is a row of the table $name, in the same order whenever its rows are the same.
SELECT *
FROM query_table($name)
ORDER BY ALL
