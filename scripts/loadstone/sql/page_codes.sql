-- One row per status code from 201 to 399 of the main stream's measured requests, of runs that count: codes that are
-- successes, like 200, and yet not in the figures of code 200 alone.
SELECT code, count(*) AS n_requests, count(DISTINCT (rate, variant)) AS n_cells
FROM measured_requests($files)
WHERE code BETWEEN 201 AND 399 AND stream = 'main' AND NOT excluded
GROUP BY code
ORDER BY code;
