-- A row is the main stream of one cell of a comparison's campaigns: all its columns, as table cells holds them.
SELECT *
FROM cells
WHERE stream = 'main'
