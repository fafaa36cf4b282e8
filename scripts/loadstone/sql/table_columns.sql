-- One row per column of the table $name, in its order.
SELECT
    column_name,
    data_type
FROM duckdb_columns()
WHERE table_name = $name
ORDER BY column_index
