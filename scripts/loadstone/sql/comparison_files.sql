-- One row per Parquet file with requests of some runs of a cell, relative to the folder of the tables.
SELECT DISTINCT host, timestamp, variant, rate, requests_file
FROM facts
WHERE requests_file IS NOT NULL
ORDER BY ALL
