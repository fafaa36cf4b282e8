-- All rows of one table that is not partitioned by campaign, from all its Parquet files; a file without rows provides
-- the columns of an empty table. While a new version rewrites the files one by one, some do not have all
-- columns yet.
SELECT *
FROM read_parquet($files, hive_partitioning = false, union_by_name = true)
