"""Columns of the tables of findings and conclusions; `schema.TABLES` holds them too. Units are in the names."""

import pyarrow as pa

_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()

# What a row of a scope's table is about: one campaign (`comparison` is null, one timestamp) or one comparison.
SCOPE_KEY = [("comparison", _TEXT), ("app", _TEXT), ("host", _TEXT), ("timestamps", pa.list_(_TEXT))]

# Why there is no verdict or no figure, or a warning: see analysis/reasons.py, where every `code` says what the others
# mean. Text columns (`why`, `warning`) are made from these.
REASON = pa.struct(
    [
        *((name, _TEXT) for name in ("code", "variant", "other", "statistic")),
        *((name, _FLOAT) for name in ("value", "needed")),
    ]
)
_REASONS = [("reasons", pa.list_(REASON))]

# A variant against the baseline at one rate, in one statistic, see analysis/effects.py. Values and shifts of latencies
# are in ns, of error_fraction they are shares. Where an interval is null, `why` says for what reason.
EFFECTS = pa.schema(
    [
        *SCOPE_KEY,
        ("rate", _FLOAT),
        *((name, _TEXT) for name in ("load_model", "generator", "evidence")),
        *((name, _TEXT) for name in ("baseline", "variant", "statistic")),
        *((name, _FLOAT) for name in ("baseline_value", "value")),
        *((name, _FLOAT) for name in ("shift", "shift_low", "shift_high")),
        *((name, _FLOAT) for name in ("ratio", "ratio_low", "ratio_high")),
        *((name, _INT) for name in ("n_runs", "baseline_n_runs", "n_pairs")),  # n_pairs null: not by pairs
        *((name, _FLOAT) for name in ("freedom", "borrowed")),  # degrees; those that other cells lent are among them
        *((name, _TEXT) for name in ("verdict", "why")),
        *((name, _FLOAT) for name in ("p_adjusted", "p_equivalent_adjusted")),
        ("n_compared", _INT),  # figures of the scope among which the p values are adjusted
        *((name, _FLOAT) for name in ("margin", "confidence")),
        ("runs_needed", _INT),  # of each variant, for a verdict at four in five tries; null: more than is sensible
        *_REASONS,
    ]
)

_MEASURED = [(name, _TEXT) for name in ("load_model", "generator", "evidence")]
_RATES = pa.list_(_FLOAT)

# The highest rate that a variant carries, see loadstone/stats/saturation.py; rates in requests/s. A null `low` or
# `high`: measured rates do not reach it. `by` (throughput or latency) is what ends the carried rates, `statistic` the
# latency that was looked at. Every measured rate is in one of `carried`, `near` and `beyond`.
KNEES = pa.schema(
    [
        *SCOPE_KEY,
        *_MEASURED,
        ("variant", _TEXT),
        *((name, _FLOAT) for name in ("knee_rate", "low", "high")),
        *((name, _TEXT) for name in ("by", "statistic")),
        *((name, _RATES) for name in ("carried", "near", "beyond")),
        ("n_runs", _INT),  # at the rate that has the fewest
        ("confidence", _FLOAT),
        ("problem", _TEXT),
    ]
)

# A variant's latency at a share of its own knee, and the ratio to that of the baseline at the same share of the
# baseline's; loads in requests/s, see loadstone/stats/saturation.py.
KNEE_SHARES = pa.schema(
    [
        *SCOPE_KEY,
        *_MEASURED,
        ("variant", _TEXT),
        ("share", _FLOAT),
        ("statistic", _TEXT),
        *((name, _FLOAT) for name in ("load", "value_ns", "low_ns", "high_ns")),
        ("baseline", _TEXT),
        *((name, _FLOAT) for name in ("baseline_load", "baseline_value_ns", "ratio", "ratio_low", "ratio_high")),
        ("confidence", _FLOAT),
        ("problem", _TEXT),
        ("baseline_problem", _TEXT),  # the part of `problem` that is about the baseline
    ]
)

# What a variant adds to the one that it is built upon (`below`), see analysis/layers.py.
LAYERS = pa.schema(
    [
        *SCOPE_KEY,
        ("rate", _FLOAT),
        *_MEASURED,
        *((name, _TEXT) for name in ("below", "variant", "statistic")),
        *((name, _FLOAT) for name in ("added_ns", "added_low_ns", "added_high_ns")),
        *((name, _INT) for name in ("n_runs", "below_n_runs", "n_pairs")),  # n_pairs null: not by pairs
        ("confidence", _FLOAT),
        ("warning", _TEXT),
        *_REASONS,
    ]
)

# What two layers together add beyond what each adds alone, see loadstone/stats/interaction.py. `top` is built upon
# `left` and `right`, both upon `bottom`.
INTERACTIONS = pa.schema(
    [
        *SCOPE_KEY,
        ("rate", _FLOAT),
        *_MEASURED,
        *((name, _TEXT) for name in ("bottom", "left", "right", "top", "statistic")),
        *((name, _FLOAT) for name in ("interaction_ns", "interaction_low_ns", "interaction_high_ns", "p_adjusted")),
        ("confidence", _FLOAT),
        ("warning", _TEXT),
        *_REASONS,
    ]
)

# What weakens the conclusions from a scope, see analysis/caveats/, where every `claim` is declared. Rate, variant
# and statistic are null where it is about several. It holds for `n` of `n_of` of what `counted` names: runs, cells, ...
_CELL = ("variant", "load_model", "generator")
CLAIMS = pa.schema(
    [
        *SCOPE_KEY,
        ("claim", _TEXT),
        ("weight", _TEXT),  # serious, limits or note
        ("rate", _FLOAT),
        *((name, _TEXT) for name in ("variant", "statistic")),
        *((name, _INT) for name in ("n", "n_of")),
        ("counted", _TEXT),
        ("text", _TEXT),  # a sentence for readers, with figures
        ("remedy", _TEXT),
        # Those whose figures it concerns.
        ("cells", pa.list_(pa.struct([("rate", _FLOAT), *((name, _TEXT) for name in _CELL)]))),
    ]
)

_RUN = [
    *((name, _TEXT) for name in ("app", "host", "timestamp", "variant")),
    ("rate", _FLOAT),
    ("run", pa.int32()),
    ("variant_dir", _TEXT),
]

# What the latency of a run does over its time, see `loadstone.stats.run_shape`: runs with single requests, those that
# are left out of statistics too.
RUN_SHAPES = pa.schema(
    [
        *_RUN,
        ("shape", _TEXT),
        ("shapes", pa.list_(_TEXT)),  # all that hold
        ("requests", _INT),
        ("half_ratio", _FLOAT),  # mean of the first half / mean of the second
        ("trend_share", _FLOAT),  # by a straight line, of the start: 0.3 is 30 % more at the end
        ("trend_p", _FLOAT),
        ("change_share", _FLOAT),  # the same by the line or curve that fits a drift best; None: no drift
        ("warmup_requests", _INT),  # by MSER-5; None: no end of it in the first half
        ("warmup_s", _FLOAT),
        ("warmup_share", _FLOAT),  # by which a slow start lengthens the mean
        ("change_seqs", pa.list_(_INT)),
        ("levels_ns", pa.list_(_FLOAT)),  # before the first change, and after each
        ("period_requests", _FLOAT),
        ("period_s", _FLOAT),
        ("period_p", _FLOAT),
        ("period_share", _FLOAT),  # by which the peak is above the trough
        ("dip", _FLOAT),
        ("dip_p", _FLOAT),
        ("noise", _FLOAT),  # standard error of the mean within the run, as a share of it
    ]
)

# How punctually the load generator sent, and what latencies are when they count from the moment a request was due.
# `refused_code` and `refused` say why that is unknown, as code and text; then all but the key and `requests` is empty.
SENDING = pa.schema(
    [
        *_RUN,
        *((name, _TEXT) for name in ("refused_code", "refused")),
        ("requests", _INT),
        ("asked_rate", _FLOAT),
        ("achieved_rate", _FLOAT),
        *((f"lag_{name}_ns", _FLOAT) for name in ("p50", "p90", "p99", "max")),
        ("lag_max_seq", _INT),
        ("lag_max_due_s", _FLOAT),  # since the first request was due
        *(
            (f"{kind}_{name}_ns", _FLOAT)
            for kind in ("observed", "corrected")
            for name in ("mean", "p50", "p90", "p99", "p999")
        ),
        ("lag_limit_ns", _FLOAT),
        ("judged_by", pa.string()),
        ("judged_lag_ns", _FLOAT),
        ("limited", _BOOL),
    ]
)

# What a run's record says of one of several generators: where it ran, and its clock relative to ours.
SENDER = pa.struct(
    [
        ("generator", pa.int32()),
        ("place", _TEXT),
        *((name, _INT) for name in ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")),
    ]
)

# One of several generators that shared a run's load: how late its requests were by its own clock.
# `start_lag_ns`: how long after the first generator's its own first request was due, once clocks are compared;
# `clock_offset_ns`: how far its clock was ahead of the collecting machine's, give or take the uncertainty, and by how
# much that changed during the attack; null where both are one machine.
SENDERS = pa.schema(
    [
        *_RUN,
        ("generator", pa.int32()),
        ("place", _TEXT),
        ("requests", _INT),
        *((f"lag_{name}_ns", _FLOAT) for name in ("p50", "p99", "max")),
        ("start_lag_ns", _FLOAT),
        *((f"clock_{name}_ns", _INT) for name in ("offset", "uncertainty", "drift")),
    ]
)

# Why requests of a run failed (analysis/error_causes.py), excluded runs as well. A row without a text sums up `n_texts`
# of them.
ERROR_CAUSES = pa.schema(
    [
        *((name, _TEXT) for name in ("app", "host", "timestamp", "variant")),
        ("rate", _FLOAT),
        ("run", pa.int32()),
        *((name, _TEXT) for name in ("variant_dir", "stream", "cause", "side")),
        ("code", pa.int32()),
        ("error", _TEXT),
        ("count", _INT),
        ("n_texts", _INT),
    ]
)

# A cell in the order of campaigns, see analysis/history.py: a figure with its interval (ns, or a share), the number of
# the level that it belongs to, and whether that begins here. Rows of one `way` of measuring form a series. `differs`:
# what was otherwise in the campaign before, of any way, and how many runs were sent late. `note` is the catalogue's.
HISTORY = pa.schema(
    [
        *((name, _TEXT) for name in ("app", "host", "variant")),
        ("rate", _FLOAT),
        *((name, _TEXT) for name in ("statistic", "timestamp")),
        ("started_at", pa.timestamp("us", "UTC")),
        *((name, _TEXT) for name in ("way", "evidence")),  # requests, or reports of runs
        *((name, _FLOAT) for name in ("value", "low", "high")),
        ("at_least", pa.bool_()),  # it falls among requests that timed out
        *((name, _INT) for name in ("n_runs", "level")),
        ("change", pa.bool_()),
        ("differs", pa.list_(_TEXT)),
        ("resolution_ns", _INT),  # of the latencies; null: not known
        ("note", _TEXT),
    ]
)

_SHOWN = [column for name in ("p50", "p90", "p99") for column in ((f"{name}_ns", _FLOAT), (f"{name}_censored", _BOOL))]
# Percentiles at `shares` as far as the requests support them; those from `least_from_share` on are least values, for
# requests timed out.
_CURVE = [("shares", pa.list_(_FLOAT)), ("latencies_ns", pa.list_(_FLOAT)), ("least_from_share", _FLOAT)]

# What a run by itself says (analysis/distributions.py), excluded runs as well.
# A percentile that its own requests do not support is null.
RUN_FIGURES = pa.schema(
    [
        *_RUN,
        *((name, _INT) for name in ("n_requests", "n_timeouts")),
        ("mean_ns", _FLOAT),
        *_SHOWN,
        ("ok_n_requests", _INT),
        *((f"ok_{name}_ns", _FLOAT) for name in ("mean", "p50", "p90", "p99")),
        *_CURVE,
    ]
)

# Requests of all runs that count, pooled, by the time within their runs at which they were sent.
TIME_BINS = pa.schema(
    [
        *SCOPE_KEY,
        ("rate", _FLOAT),
        *_MEASURED[:2],
        ("variant", _TEXT),
        *((name, _FLOAT) for name in ("from_s", "to_s")),
        *((name, _INT) for name in ("n_runs", "n_requests", "n_timeouts")),
        ("mean_ns", _FLOAT),
        *_SHOWN,
    ]
)

# The distribution of the requests of all runs that count, pooled.
PERCENTILE_CURVES = pa.schema(
    [
        *SCOPE_KEY,
        ("rate", _FLOAT),
        *_MEASURED[:2],
        ("variant", _TEXT),
        *((name, _INT) for name in ("n_runs", "n_requests", "n_timeouts")),
        *_CURVE,
    ]
)

FINDINGS = {
    "run_shapes": RUN_SHAPES,
    "sending": SENDING,
    "senders": SENDERS,
    "run_figures": RUN_FIGURES,
    "time_bins": TIME_BINS,
    "percentile_curves": PERCENTILE_CURVES,
    "effects": EFFECTS,
    "knees": KNEES,
    "knee_shares": KNEE_SHARES,
    "layers": LAYERS,
    "interactions": INTERACTIONS,
    "claims": CLAIMS,
    "error_causes": ERROR_CAUSES,
    "history": HISTORY,
}
