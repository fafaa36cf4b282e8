"""Columns of every table. The contract that queries, reports and other tools rely on.

Units are in the names; times are UTC. `requests.sent_at` has nanoseconds and therefore no zone (DuckDB's zoned
nanoseconds have no arithmetic); all other times are zoned microseconds.
"""

import pyarrow as pa

# Raise it when columns or their meaning change: everything is then converted again.
VERSION = 2

_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_INSTANT = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(_TEXT)

CAMPAIGN_KEY = [("app", _TEXT), ("host", _TEXT), ("timestamp", _TEXT)]
CELL_KEY = [*CAMPAIGN_KEY, ("variant", _TEXT), ("rate", _FLOAT)]
KEY = [*CELL_KEY, ("run", pa.int32())]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}

_DESCRIBED = [
    ("variant_dir", _TEXT),
    ("load_model", _TEXT),
    ("generator", _TEXT),
    ("metadata_version", _TEXT),
    ("evidence", _TEXT),
    ("duration_s", _FLOAT),
    ("warmup_rate", _FLOAT),
    ("replicas", pa.int32()),
    ("labels", pa.map_(_TEXT, _TEXT)),
    ("expected_requests", _INT),
    ("source", _TEXT),
    ("inferred", pa.map_(_TEXT, _TEXT)),  # column -> why its value does not rest on what the metadata says
]

REQUESTS = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("stream", _TEXT),
        ("phase", _TEXT),
        ("seq", _INT),
        ("sent_at", pa.timestamp("ns")),
        ("latency_ns", _INT),
        ("code", pa.int32()),
        ("error", _TEXT),
        ("error_class", _TEXT),
        ("bytes_out", _INT),
        ("bytes_in", _INT),
    ]
)

SUMMARIES = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("stream", _TEXT),
        ("requests", _INT),
        ("success", _FLOAT),
        *((name, _FLOAT) for name in ("mean_ns", "min_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "max_ns")),
        ("throughput", _FLOAT),
        ("status_codes", pa.map_(_TEXT, _INT)),
        ("started_at", _INSTANT),
    ]
)

RESOURCES = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("sampled_at", _INSTANT),
        ("scope", _TEXT),
        ("name", _TEXT),
        ("cpu_millicores", _FLOAT),
        ("memory_mib", _FLOAT),
    ]
)

SPANS = pa.schema(
    [
        *KEY,
        ("trace_id", _TEXT),
        ("span_id", _TEXT),
        ("parent_id", _TEXT),
        ("service", _TEXT),
        ("operation", _TEXT),
        ("started_at", _INSTANT),
        ("duration_ns", _INT),
        ("dump", _TEXT),
    ]
)

PLANNED = pa.schema([*KEY, ("variant_dir", _TEXT), ("position", pa.int32()), ("collected", _BOOL)])

PROBLEMS = pa.schema([*KEY, ("variant_dir", _TEXT), ("source", _TEXT), ("problem", _TEXT)])

# What converting learned of a run, before anything is judged. `faults` are those of the `problems` that make its data
# unfit; `requests_file` holds its cell's requests, relative to the tables' folder.
FACTS = pa.schema([*KEY, *_DESCRIBED, ("faults", _TEXTS), ("problems", _TEXTS), ("requests_file", _TEXT)])

RUNS = pa.schema(
    [
        *KEY,
        ("started_at", _INSTANT),
        *_DESCRIBED,
        ("requests", _INT),
        ("complete", _BOOL),
        ("send_lag_p99_ns", _FLOAT),
        ("tags", _TEXTS),
        ("excluded", _BOOL),
        ("exclusion_reason", _TEXT),
        ("problems", _TEXTS),
    ]
)

CELLS = pa.schema(
    [
        *CELL_KEY,
        ("stream", _TEXT),
        ("n_runs", _INT),
        ("n_excluded", _INT),
        ("n_requests", _INT),
        *((name, _FLOAT) for name in ("mean_ns", "std_ns", "run_mean_ns", "run_std_ns")),
        ("mean_low_ns", _FLOAT),
        ("mean_high_ns", _FLOAT),
        ("ok_n_requests", _INT),
        *((name, _FLOAT) for name in ("ok_mean_ns", "ok_std_ns", "ok_run_mean_ns", "ok_run_std_ns")),
        *(
            column
            for name in PERCENTILES
            for column in (
                (f"{name}_ns", _FLOAT),
                (f"{name}_low_ns", _FLOAT),
                (f"{name}_high_ns", _FLOAT),
                (f"{name}_estimable", _BOOL),
            )
        ),
        *((f"ok_{name}_ns", _FLOAT) for name in ("p50", "p90", "p99")),
        ("error_fraction", _FLOAT),
        ("error_fraction_std", _FLOAT),
        ("error_fractions", pa.map_(_TEXT, _FLOAT)),
        ("error_fraction_stds", pa.map_(_TEXT, _FLOAT)),
    ]
)

# Every table with a view in the database; `facts` is internal and has none.
TABLES = {
    "runs": RUNS,
    "requests": REQUESTS,
    "summaries": SUMMARIES,
    "resources": RESOURCES,
    "spans": SPANS,
    "cells": CELLS,
    "planned": PLANNED,
    "problems": PROBLEMS,
}
