-- What could not be understood in the archive
SELECT
    problem,
    count(*) AS n,
    min(source) AS for_example
FROM problems
GROUP BY problem
ORDER BY n DESC, problem
