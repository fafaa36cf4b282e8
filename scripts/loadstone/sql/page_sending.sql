-- One row per run, including excluded runs, from table sending: send lag, and latencies since requests were sent and
-- since they were due. `refused`: why they are unknown.
SELECT
    rate, variant, variant_dir, run,
    refused, requests, asked_rate, achieved_rate, lag_p50_ns, lag_p99_ns, lag_max_ns, lag_limit_ns, judged_by, judged_lag_ns, limited,
    observed_mean_ns, observed_p50_ns, observed_p90_ns, observed_p99_ns, observed_p999_ns,
    corrected_mean_ns, corrected_p50_ns, corrected_p90_ns, corrected_p99_ns, corrected_p999_ns
FROM sending
ORDER BY rate, variant, variant_dir, run;
