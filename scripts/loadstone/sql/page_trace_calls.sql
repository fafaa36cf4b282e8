-- One row per kind of trace and service other than the root's, of one dump: the calls to that service in the trace with
-- the median root duration (the lower one) among those with such calls. A call is a span whose parent belongs to
-- another service; calls_ns are the durations, ordered by start.
WITH connected AS (
    SELECT * FROM spans WHERE dump = $dump AND depth IS NOT NULL
),
calls AS (
    SELECT
        child.trace_id,
        child.service,
        list(child.duration_ns ORDER BY child.started_at, child.span_id) AS calls_ns
    FROM connected AS child
    JOIN connected AS parent ON parent.trace_id = child.trace_id AND parent.span_id = child.parent_id
    WHERE parent.service <> child.service
    GROUP BY child.trace_id, child.service
),
placed AS (
    SELECT
        shares.root_service, shares.root_operation, shares.service, shares.trace_id,
        shares.root_duration_ns, shares.busy_ns, shares.share, calls.calls_ns,
        row_number() OVER kind AS place,
        count(*) OVER (PARTITION BY shares.root_service, shares.root_operation, shares.service) AS n_traces
    FROM trace_shares AS shares
    JOIN calls USING (trace_id, service)
    WHERE shares.dump = $dump AND shares.operation IS NULL AND shares.service <> shares.root_service
    WINDOW kind AS (
        PARTITION BY shares.root_service, shares.root_operation, shares.service
        ORDER BY shares.root_duration_ns, shares.trace_id
    )
)
SELECT * EXCLUDE (place, n_traces)
FROM placed
WHERE place = (n_traces + 1) // 2
ORDER BY root_service, root_operation, share DESC, service
