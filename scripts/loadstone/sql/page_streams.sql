-- One row per stream besides the main one: side attacks that this page names but does not draw.
SELECT stream, count(*) AS n_cells, sum(n_requests)::BIGINT AS n_requests
FROM cells
WHERE stream <> 'main'
GROUP BY stream
ORDER BY stream;
