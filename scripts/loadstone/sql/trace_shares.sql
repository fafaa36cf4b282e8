-- One row per operation of a service in a trace of a dump, or (operation NULL) per service and trace, over all
-- operations.
-- $files has the dump's spans; spans that are not connected to the root of their trace are excluded.
--
-- busy_ns: how long at least one of the row's spans was running during the root span. Overlapping spans count once, so
-- it is never more than the root's duration. share: busy_ns as a fraction of that duration. total_ns: the sum of all
-- durations.
WITH connected AS (
    SELECT * REPLACE (epoch_us(started_at) * 1000 AS started_at)
    FROM read_parquet($files)
    WHERE depth IS NOT NULL
),

roots AS (
    SELECT
        trace_id,
        service AS root_service,
        operation AS root_operation,
        started_at AS root_start_ns,
        duration_ns AS root_duration_ns
    FROM connected
    WHERE depth = 0
),

named AS (
    SELECT trace_id, service, operation, started_at, duration_ns, self_ns, critical_ns, failed FROM connected
    UNION ALL
    SELECT trace_id, service, NULL, started_at, duration_ns, self_ns, critical_ns, failed FROM connected
),

cut AS (
    SELECT
        named.*,
        roots.* EXCLUDE (trace_id),
        greatest(started_at, root_start_ns) AS begin_ns,
        greatest(least(started_at + duration_ns, root_start_ns + root_duration_ns), root_start_ns) AS end_ns
    FROM named
    JOIN roots USING (trace_id)
),

-- The part of a span that no earlier span of its row covers.
uncovered AS (
    SELECT
        *,
        greatest(0, end_ns - greatest(begin_ns, coalesce(max(end_ns) OVER (
            PARTITION BY trace_id, service, operation
            ORDER BY begin_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), begin_ns))) AS new_ns
    FROM cut
)

SELECT
    trace_id,
    service,
    operation,
    root_service,
    root_operation,
    make_timestamptz(root_start_ns // 1000) AS root_started_at,
    root_duration_ns,
    count(*) AS n_spans,
    count(*) FILTER (WHERE failed) AS n_failed,
    sum(duration_ns)::BIGINT AS total_ns,
    sum(new_ns)::BIGINT AS busy_ns,
    sum(self_ns)::BIGINT AS self_ns,
    sum(critical_ns)::BIGINT AS critical_ns,
    sum(new_ns) / nullif(root_duration_ns, 0) AS share,
    sum(critical_ns) / nullif(root_duration_ns, 0) AS critical_share
FROM uncovered
GROUP BY trace_id, service, operation, root_service, root_operation, root_start_ns, root_duration_ns
ORDER BY root_started_at, trace_id, service, operation NULLS FIRST
