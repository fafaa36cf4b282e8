"""Columns of every table. The contract that queries, reports and other tools rely on.

Units are in the names; times are UTC. `requests.sent_at` has nanoseconds and therefore no zone (DuckDB's zoned
nanoseconds have no arithmetic); all other times are zoned microseconds.
"""

import pyarrow as pa

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
    ("generator_cpus", _FLOAT),  # how many the load generator could use; None where nobody recorded it
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
        ("asked_at", _INSTANT),
    ]
)

# The view over it, see sql/resource_usage.sql.
RESOURCE_USAGE = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("scope", _TEXT),
        ("name", _TEXT),
        ("n_samples", _INT),
        ("parts_min", _INT),
        ("parts_max", _INT),
        *((f"cpu_{part}_millicores", _FLOAT) for part in ("min", "mean", "max")),
        *((f"memory_{part}_mib", _FLOAT) for part in ("min", "mean", "max")),
    ]
)

# What happened to a run's target during the attack.
INCIDENTS = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        *((name, _TEXT) for name in ("kind", "object", "container", "reason", "text")),
        ("count", _INT),
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
        ("follows", _BOOL),
        ("failed", _BOOL),
        ("depth", pa.int32()),
        ("self_ns", _INT),
        ("critical_ns", _INT),
    ]
)

TRACE_SHARES = pa.schema(
    [
        *CAMPAIGN_KEY,
        ("dump", _TEXT),
        ("trace_id", _TEXT),
        ("service", _TEXT),
        ("operation", _TEXT),
        ("root_service", _TEXT),
        ("root_operation", _TEXT),
        ("root_started_at", _INSTANT),
        ("root_duration_ns", _INT),
        ("n_spans", _INT),
        ("n_failed", _INT),
        ("total_ns", _INT),
        ("busy_ns", _INT),
        ("self_ns", _INT),
        ("critical_ns", _INT),
        ("share", _FLOAT),
        ("critical_share", _FLOAT),
    ]
)

PLANNED = pa.schema([*KEY, ("variant_dir", _TEXT), ("position", pa.int32()), ("collected", _BOOL)])

# A try that gave no result. `nth` counts the failed tries of its run from 1; the run may have been collected later.
FAILURES = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("nth", pa.int32()),
        ("failed_at", _INSTANT),
        ("phase", _TEXT),
        ("error", _TEXT),
        ("evidence", _TEXTS),
        ("collected", _BOOL),
        ("source", _TEXT),
    ]
)

PROBLEMS = pa.schema([*KEY, ("variant_dir", _TEXT), ("source", _TEXT), ("problem", _TEXT)])

# What converting learned of a run, before anything is judged. `faults` are those of the `problems` that make its data
# unfit, `trouble` is what happened to its target; `requests_file` holds its cell's requests, relative to the tables'
# folder.
FACTS = pa.schema(
    [
        *KEY,
        *_DESCRIBED,
        ("trouble", _TEXT),
        ("faults", _TEXTS),
        ("problems", _TEXTS),
        ("requests_file", _TEXT),
        ("results_sha256", _TEXT),  # of its main results as they lie in the archive
    ]
)

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

# What a comparison's row has in common with a cell's: the pooled requests of its runs.
POOLED = [
    field
    for field in CELLS
    if field.name.startswith(("n_requests", "run_", "mean_", "ok_", *(f"{name}_" for name in PERCENTILES)))
    and field.name not in ("mean_ns", "ok_mean_ns", "ok_std_ns")
]

COMPARISONS = pa.schema(
    [
        ("comparison", _TEXT),
        ("app", _TEXT),
        ("host", _TEXT),
        ("timestamps", _TEXTS),
        ("variant", _TEXT),
        ("rate", _FLOAT),
        ("load_model", _TEXT),
        ("evidence", _TEXT),
        ("n_runs", _INT),
        ("n_excluded", _INT),
        ("vegeta_summaries_n_runs", _INT),
        ("vegeta_summaries_mean_ns", _FLOAT),
        ("vegeta_summaries_std_ns", _FLOAT),
        ("all_raw_data_n_runs", _INT),
        ("all_raw_data_mean_ns", _FLOAT),
        ("all_raw_data_std_ns", _FLOAT),
        ("all_raw_data_ok_mean_ns", _FLOAT),
        ("all_raw_data_ok_std_ns", _FLOAT),
        *(
            (f"{name}{end}", _FLOAT)
            for name in ("error_fraction", "error_503_fraction", "error_0_fraction", "error_other_fraction")
            for end in ("", "_std")
        ),
        *POOLED,
    ]
)

# A tag that is proposed and not applied: of a campaign, of a cell or of a run; `lines` go into config/catalogue.yaml.
# `tagged`: the tag is there already.
SUGGESTIONS = pa.schema(
    [*KEY, ("kind", _TEXT), ("tag", _TEXT), ("evidence", _TEXT), ("tagged", _BOOL), ("lines", _TEXT)]
)

# Every table with a view in the database; `facts` is internal and has none.
TABLES = {
    "runs": RUNS,
    "requests": REQUESTS,
    "summaries": SUMMARIES,
    "resources": RESOURCES,
    "incidents": INCIDENTS,
    "spans": SPANS,
    "trace_shares": TRACE_SHARES,
    "cells": CELLS,
    "cells_all": CELLS,  # as if no run were left out; n_excluded says how many of its runs `cells` leaves out
    "comparisons": COMPARISONS,
    "planned": PLANNED,
    "failures": FAILURES,
    "problems": PROBLEMS,
    "suggestions": SUGGESTIONS,
}

# Views over these, each made by the SQL file of its name.
VIEWS = {"resource_usage": RESOURCE_USAGE}

# Those of which a comparison has a file, not a campaign.
PLAIN = ("comparisons",)
