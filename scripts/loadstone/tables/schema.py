"""Columns of every table. The contract that queries, reports and other tools rely on.

Units are in the names; times are UTC. `requests.sent_at` has nanoseconds and therefore no zone (DuckDB's zoned
nanoseconds have no arithmetic); all other times are zoned microseconds.
"""

import pyarrow as pa

from loadstone.tables.schema_analysis import FINDINGS, SENDER

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
    ("duration_s", _FLOAT),  # None where a number of iterations ends the run
    ("warmup_rate", _FLOAT),
    ("replicas", pa.int32()),
    ("labels", pa.map_(_TEXT, _TEXT)),
    ("expected_requests", _INT),
    ("source", _TEXT),
    ("generator_cpus", _FLOAT),  # how many the load generator could use; None where nobody recorded it
    ("inferred", pa.map_(_TEXT, _TEXT)),  # column -> why its value does not rest on what the metadata says
    ("resolution_ns", _FLOAT),  # latencies come in whole multiples of it; None where that is not known
    ("users", pa.int32()),  # of closed load
    ("description", _TEXT),  # of an imported run
    ("timeout_s", _FLOAT),  # of one request; None where the metadata do not say
    ("generators", pa.int32()),  # that shared the load; null where the metadata do not say
    ("sent_by", _TEXT),  # what sent the load, how many of it, over how many connections
    ("plan_order", _TEXT),  # of the sweep: blocks or fixed; None where the metadata do not say
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
        ("offset_ns", _INT),  # start since that of the run, where the tool gives no time of day (`sent_at` is null)
        ("answered_by", _TEXT),  # of an answer that is no success: proxy or service, where the answer says it
        ("generator", pa.int32()),  # which of several that shared the load, from 0; null where there was one
    ]
)

# What a tool itself reported of one run's stream. `preferred`: of several reports the one that statistics take.
# `problems` say what is wrong with it, by itself or by the run's requests.
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
        *((name, _FLOAT) for name in ("std_ns", "p75_ns", "p999_ns")),
        ("source", _TEXT),
        ("preferred", _BOOL),
        ("problems", _TEXTS),
    ]
)

# Every figure that a tool printed of a run, see `loadstone.readers.base.Figure`.
FIGURES = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        *((name, _TEXT) for name in ("source", "section", "metric", "statistic")),
        ("value", _FLOAT),
        ("unit", _TEXT),
        ("text", _TEXT),
    ]
)

# How many requests of a run's stream took more than `lower_ns` and at most `upper_ns`.
HISTOGRAMS = pa.schema(
    [
        *KEY,
        ("variant_dir", _TEXT),
        ("stream", _TEXT),
        ("source", _TEXT),
        ("lower_ns", _FLOAT),
        ("upper_ns", _FLOAT),
        ("count", _INT),
    ]
)

# Load generators: what their figures mean, see `loadstone.readers.load_generators`.
GENERATORS = pa.schema(
    [
        ("generator", _TEXT),
        ("load_models", _TEXTS),
        *((name, _TEXT) for name in ("starts_at", "ends_at", "connecting", "stamp")),
        ("resolution_ns", _FLOAT),
        ("source", _TEXT),
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
        ("started_at", _INSTANT),  # as people or the tool said; what requests say goes before it
        ("requests_file", _TEXT),
        ("results_sha256", _TEXT),  # of its main results as they lie in the archive
        ("senders", pa.list_(SENDER)),  # as its record describes each of several generators
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
        ("clock_set_back_s", _FLOAT),  # during the run, by so much: nothing that rests on its times is given then
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
        ("resolution_ns", _FLOAT),  # no difference below it means anything; None where that is not known
        *((name, _FLOAT) for name in ("mean_ns", "std_ns", "run_mean_ns", "run_std_ns")),
        ("mean_low_ns", _FLOAT),
        ("mean_high_ns", _FLOAT),
        ("mean_censored", _BOOL),  # requests timed out: it is at least this
        ("n_timeouts", _INT),
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
                (f"{name}_censored", _BOOL),  # it falls among requests that timed out: it is at least this
            )
        ),
        *((f"ok_{name}_ns", _FLOAT) for name in ("p50", "p90", "p99")),
        ("error_fraction", _FLOAT),
        ("error_fraction_std", _FLOAT),
        ("error_fraction_low", _FLOAT),
        ("error_fraction_high", _FLOAT),
        ("error_fractions", pa.map_(_TEXT, _FLOAT)),
        ("error_fraction_stds", pa.map_(_TEXT, _FLOAT)),
        # Requests answered without failure per second: within the attack's length, counted from the first answer on;
        # mean over runs.
        *((f"throughput{end}", _FLOAT) for end in ("", "_low", "_high")),
    ]
)

# What a comparison's row has in common with a cell's: the pooled requests of its runs.
POOLED = [
    field
    for field in CELLS
    if field.name.startswith(
        ("n_requests", "n_timeouts", "throughput", "run_", "mean_", "ok_", *(f"{name}_" for name in PERCENTILES))
    )
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
        ("generator", _TEXT),
        ("evidence", _TEXT),
        ("n_runs", _INT),
        ("n_excluded", _INT),
        ("resolution_ns", _FLOAT),
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

# A line fitted over the runs of a comparison, see `loadstone.stats.lines`: `of` per one of `x`, in `unit`; without one,
# `problem` says why. Points are runs: `n_runs` of them, at `n_levels` different x; `n_left_out` lack x or the figure.
FITS = pa.schema(
    [
        *((name, _TEXT) for name in ("comparison", "app", "x", "of", "name", "unit")),
        *((name, _INT) for name in ("n_runs", "n_levels", "n_left_out")),
        *((name, _FLOAT) for name in ("slope", "slope_low", "slope_high")),
        *((name, _FLOAT) for name in ("intercept", "intercept_low", "intercept_high")),
        *((name, _FLOAT) for name in ("residual_std", "x_min", "x_max", "confidence")),
        ("problem", _TEXT),
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
    "figures": FIGURES,
    "histograms": HISTOGRAMS,
    "resources": RESOURCES,
    "incidents": INCIDENTS,
    "spans": SPANS,
    "trace_shares": TRACE_SHARES,
    "cells": CELLS,
    "cells_all": CELLS,  # as if no run were left out; n_excluded says how many of its runs `cells` leaves out
    "comparisons": COMPARISONS,
    "fits": FITS,
    "planned": PLANNED,
    "failures": FAILURES,
    "problems": PROBLEMS,
    "suggestions": SUGGESTIONS,
    "generators": GENERATORS,
    **FINDINGS,
}

# Figures of a cell's main stream as `loadstone.stats.Replicates` has them, one row per statistic. Internal, as `facts`.
REPLICATES = pa.schema(
    [
        *CELL_KEY,
        ("statistic", _TEXT),
        ("value", _FLOAT),
        ("draws", pa.list_(pa.float32())),
        ("within", pa.list_(pa.float32())),
        ("n_runs", _INT),
        *((name, _INT) for name in ("n_blocks", "n_requests", "n_timeouts")),
        *((name, _FLOAT) for name in ("offered", "limit_ns")),
    ]
)

# Those of which a cell has a file of its own.
OF_CELLS = ("requests", "figures", "histograms", "resources")

# Those that conversion writes besides, one file of each campaign; and those of a trace dump.
OF_LISTINGS = ("summaries", "incidents", "planned", "failures", "problems", "facts")
OF_DUMPS = ("spans", "trace_shares", "problems")

# Views over these, each made by the SQL file of its name.
VIEWS = {"resource_usage": RESOURCE_USAGE}

# Those that are not parted by campaign: a comparison has a file of each, generators and history have one.
PLAIN = ("comparisons", "fits", "generators", "history")

# Those about a scope, which is a campaign (a file in its folder) or a comparison (a file of its own).
SCOPED = (
    "effects",
    "knees",
    "knee_shares",
    "layers",
    "interactions",
    "claims",
    "time_bins",
    "percentile_curves",
)

# What is written of every campaign that is analysed, and of every comparison that is made: the workflow waits for them.
OF_RUNS = ("run_shapes", "sending", "senders", "run_figures")
ANALYSED = ("runs", "cells", "cells_all", "suggestions", "error_causes", *OF_RUNS, "replicates", *SCOPED)
COMPARED = ("comparisons", "fits", *SCOPED)
