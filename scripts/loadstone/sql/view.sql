-- All rows of one table, from all its Parquet files. The key of the campaign is read from the folder names, so that a
-- query for one campaign opens no file of another.
SELECT
    app_dir AS app,
    host_dir AS host,
    timestamp_dir AS timestamp,
    * EXCLUDE (app, host, timestamp, app_dir, host_dir, timestamp_dir)
FROM read_parquet(
    $files,
    hive_partitioning = true,
    hive_types = {'app_dir': VARCHAR, 'host_dir': VARCHAR, 'timestamp_dir': VARCHAR}
)
