-- No row: a table that nothing has been written to yet, with its columns from the empty file that $files names.
SELECT *
FROM read_parquet($files)
