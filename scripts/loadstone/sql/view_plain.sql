-- A row is a row of one table that is not parted by campaign, from all Parquet files that $files names.
SELECT *
FROM read_parquet($files, hive_partitioning = false)
