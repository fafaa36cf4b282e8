-- One row: the contents of one dump. n_connected is the number of spans connected to the root of their trace.
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
