-- One row per stream other than the main one: side attacks, which the page lists but does not draw.
SELECT stream, count(*) AS n_cells, sum(n_requests)::BIGINT AS n_requests
FROM cells
WHERE stream <> 'main'
GROUP BY stream
ORDER BY stream;
