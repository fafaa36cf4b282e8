-- One row: what one dump holds. n_connected counts the spans that hang together with their trace's root.
SELECT
    count(DISTINCT trace_id) AS n_traces,
    count(*) AS n_spans,
    count(*) FILTER (WHERE depth IS NOT NULL) AS n_connected,
    count(*) FILTER (WHERE failed) AS n_failed,
    count(DISTINCT service) AS n_services,
    min(started_at)::VARCHAR AS first_at,
    max(started_at)::VARCHAR AS last_at
FROM spans
WHERE dump = $dump
