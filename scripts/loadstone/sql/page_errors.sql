-- One row per cell (rate, variant) of the main stream and class of error that occurred in it (of cells_all, with
-- excluded runs, if $with_excluded): the mean over runs of its share of requests, and the standard deviation over runs.
SELECT rate, variant, entry.key AS error_class, entry.value AS share, error_fraction_stds[entry.key] AS share_std
FROM (
    SELECT rate, variant, error_fraction_stds, unnest(map_entries(error_fractions)) AS entry
    FROM (
        SELECT * FROM cells WHERE NOT $with_excluded
        UNION ALL BY NAME
        SELECT * FROM cells_all WHERE $with_excluded
    )
    WHERE stream = 'main'
)
WHERE entry.value > 0
ORDER BY error_class, rate, variant;
