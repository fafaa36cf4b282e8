-- One row per problem, the first $shown of each campaign; n_problems is the number of all in that campaign.
SELECT
    app, host, timestamp, rate, variant, run, source, problem,
    count(*) OVER (PARTITION BY app, host, timestamp) AS n_problems
FROM problems
QUALIFY row_number() OVER (
    PARTITION BY app, host, timestamp ORDER BY rate NULLS FIRST, variant, run, source, problem
) <= $shown
ORDER BY app, host, timestamp, rate NULLS FIRST, variant, run, source, problem;
