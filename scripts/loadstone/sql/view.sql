-- All rows of one table, from all Parquet files $files. The key of the campaign is read from the folder names, so that
-- a query for one campaign opens no file of another.
SELECT *
FROM read_parquet(
    $files,
    hive_partitioning = true,
    hive_types = {'app': VARCHAR, 'host': VARCHAR, 'timestamp': VARCHAR}
)
