-- One row per run with a checksum of its main results: the file's place in the archive, and its SHA-256.
SELECT host, timestamp, rate, variant_dir, run, source, results_sha256
FROM facts
WHERE results_sha256 IS NOT NULL AND source IS NOT NULL
ORDER BY source, run;
