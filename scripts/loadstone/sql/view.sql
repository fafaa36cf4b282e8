-- A row is a row of one table, from all Parquet files that $files names. The campaign's key is read from the folders,
-- so that a query for one campaign opens no file of another.
SELECT *
FROM read_parquet(
    $files,
    hive_partitioning = true,
    hive_types = {'app': VARCHAR, 'host': VARCHAR, 'timestamp': VARCHAR}
)
