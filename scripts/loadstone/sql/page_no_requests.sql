-- The same table as page_requests.sql makes, without a row: for campaigns that have samples of resources at a rate, but no
-- single requests.
CREATE OR REPLACE TEMP TABLE page_requests (
    variant VARCHAR,
    variant_dir VARCHAR,
    run INTEGER,
    phase VARCHAR,
    measured BOOLEAN,
    seq BIGINT,
    latency_ns BIGINT,
    failed BOOLEAN,
    told BOOLEAN,
    since_start_ns BIGINT,
    excluded BOOLEAN
);
