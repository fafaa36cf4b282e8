-- One row per status code from 201 to 399 of measured requests in the main stream of valid runs: these are successes,
-- but are not included in the figures of code 200.
SELECT code, count(*) AS n_requests, count(DISTINCT (rate, variant)) AS n_cells
FROM measured_requests($files)
WHERE code BETWEEN 201 AND 399 AND stream = 'main'
GROUP BY code
ORDER BY code;
