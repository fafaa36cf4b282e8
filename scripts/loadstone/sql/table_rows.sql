-- All rows of the table $name, in the order of its files.
SELECT *
FROM query_table($name)
