-- One row per problem of one trace dump, the first $shown; n_problems is the number of all.
SELECT rate, variant, run, source, problem, count(*) OVER () AS n_problems
FROM problems
WHERE source = $dump
QUALIFY row_number() OVER (ORDER BY problem) <= $shown
ORDER BY problem
