-- One row per failed attempt, the first $shown, runs without any result first. n_failures is the number of all.
SELECT
    rate, variant, run, nth, failed_at, phase, error, evidence, collected,
    count(*) OVER () AS n_failures
FROM failures
ORDER BY collected, rate, variant, run, nth
LIMIT $shown;
