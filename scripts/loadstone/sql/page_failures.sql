-- One row per try that gave no result, the first $shown, runs without any result first; n_failures is how many there are
-- in all.
SELECT
    rate, variant, run, nth, failed_at, phase, error, evidence, collected,
    count(*) OVER () AS n_failures
FROM failures
ORDER BY collected, rate, variant, run, nth
LIMIT $shown;
