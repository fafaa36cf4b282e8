-- One row per load generator of which that is known: what its latency starts and ends with, its clock, its resolution.
SELECT generator, load_models, starts_at, ends_at, connecting, stamp, resolution_ns, source
FROM generators
ORDER BY generator;
