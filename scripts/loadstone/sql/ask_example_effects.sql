-- Verdicts on variants beside their baseline
SELECT
    app,
    host,
    comparison,
    timestamps,
    rate,
    variant,
    baseline,
    statistic,
    verdict,
    round(shift / 1e6, 3) AS shift_ms,
    round(shift_low / 1e6, 3) AS low_ms,
    round(shift_high / 1e6, 3) AS high_ms,
    runs_needed
FROM effects
WHERE statistic <> 'error_fraction'
ORDER BY ALL
