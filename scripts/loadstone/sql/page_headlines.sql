-- Differences of the median and of the mean from the baseline, of all campaigns and comparisons, for the start page.
SELECT *
FROM effects
WHERE statistic IN ('p50', 'mean')
ORDER BY ALL;
