-- One row per run whose main results were hashed: where it lies in the archive, and the SHA-256 of its file as it lies there.
SELECT host, timestamp, rate, variant_dir, run, source, results_sha256
FROM facts
WHERE results_sha256 IS NOT NULL AND source IS NOT NULL
ORDER BY source, run;
