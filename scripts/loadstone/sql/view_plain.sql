-- A row is a row of one table that is not parted by campaign, from all Parquet files that $files names; one without rows
-- gives a table's columns alone. While a new version makes them again one after another, some lack its columns.
SELECT *
FROM read_parquet($files, hive_partitioning = false, union_by_name = true)
