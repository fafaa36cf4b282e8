-- A row is one Parquet file, relative to the tables' folder, with the requests of some runs of a cell.
SELECT DISTINCT host, timestamp, variant, rate, requests_file
FROM facts
WHERE requests_file IS NOT NULL
ORDER BY ALL
