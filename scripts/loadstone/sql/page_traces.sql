-- One row per kind of trace (service and operation of the root), service and operation (NULL: the entire service) of
-- one
-- dump: the number of traces with it, and the distribution over these of its share of the root's duration.
-- shares are the 5th, 25th, 50th, 75th and 95th percentiles; critical share and self share are medians.
WITH counted AS (
    SELECT
        *,
        count(DISTINCT trace_id) OVER (PARTITION BY root_service, root_operation) AS n_all
    FROM trace_shares
    WHERE dump = $dump AND root_duration_ns > 0
)
SELECT
    root_service,
    root_operation,
    service,
    operation,
    any_value(n_all) AS n_all,
    count(*) AS n_traces,
    sum(n_spans)::BIGINT AS n_spans,
    sum(n_failed)::BIGINT AS n_failed,
    quantile_cont(busy_ns, 0.5) AS busy_ns,
    quantile_cont(root_duration_ns, 0.5) AS root_duration_ns,
    quantile_cont(share, [0.05, 0.25, 0.5, 0.75, 0.95]) AS shares,
    quantile_cont(critical_share, 0.5) AS critical_share,
    quantile_cont(self_ns / root_duration_ns, 0.5) AS self_share
FROM counted
GROUP BY root_service, root_operation, service, operation
ORDER BY n_all DESC, root_service, root_operation, operation IS NOT NULL, shares[3] DESC, service, operation
