"""The charts of the site: each function returns one Altair chart.

A page holds the specification of each chart once, over data sets that its script fills by name: ``rows`` (each function
names their fields), ``labels`` (variant, label, y in pixels: the variants' names at the ends of their lines), ``knees``
and ``runs`` (figures of single runs). Latencies are in the page's unit, loads in requests/s, shares in percent.
``usermeta.axes`` says what an axis shows (``load``, ``latency``, ``other`` or ``fixed``), for the reader's choice of
linear and logarithmic axes; ``usermeta.rows`` is true where each row is drawn on a line of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import distributions, effects, history, load, run
from loadstone.report.charts.base import CONFIG, Load, log_axis, plain
from loadstone.report.numbers import Unit

__all__ = ["Load", "fit_specification", "history_specifications", "specifications", "trace_specifications"]

CONCLUDED = ("dumbbell", "effects-ratio", "effects-shift", "effects-errors", "layers")
# What the page of a comparison takes from `specifications`.
SHARED = (
    "latency",
    "success",
    "failed",
    "errors",
    "reported",
    "percentiles",
    "heat",
    "curves",
    *CONCLUDED,
    "config",
    "log_axis",
)
_USAGE = {"cpu": "CPU (millicores)", "memory": "Memory (MiB)"}


def specifications(styles: Sequence[Style], unit: Unit, loads: Load) -> dict[str, Any]:
    """The Vega-Lite specification of every chart by name, and what all share."""
    return _specifications(
        {
            "latency": load.latency_across_load(styles, unit, loads),
            "success": load.success_latency_across_load(styles, unit, loads),
            "failed": load.share_across_load(styles, loads, "Failed requests (%)"),
            "errors": load.share_across_load(styles, loads, "Share of requests (%)"),
            "time": run.latency_over_time(styles, unit),
            "cdf": run.run_distribution(unit),
            "points": run.run_requests(unit),
            "bins": run.run_request_bins(unit),
            "histogram": run.run_histogram(unit),
            "reported": load.reported_across_load(styles, unit, loads),
            "percentiles": distributions.percentile_curves(styles, unit),
            "heat": distributions.latency_by_time_and_load(styles, unit, loads),
            "curves": distributions.percentiles_of_variants(styles, unit),
            "dumbbell": effects.dumbbells(styles, loads, unit),
            "effects-errors": effects.errors_to_baseline(styles, loads),
            "effects-ratio": effects.ratio_to_baseline(styles, loads),
            "effects-shift": effects.shift_to_baseline(styles, loads, unit),
            "layers": effects.added_by_layers(styles, loads, unit),
            **{f"use-{what}": run.use_across_load(styles, loads, title) for what, title in _USAGE.items()},
            **{f"use-time-{what}": run.use_over_time(styles, title) for what, title in _USAGE.items()},
        }
    )


def fit_specification(styles: Sequence[Style], across: str, up: str) -> dict[str, Any]:
    """The specification of one fitted line's chart."""
    return plain(load.fit_line(styles, across, up))


def trace_specifications() -> dict[str, Any]:
    """Those of the page of a trace dump."""
    return _specifications({"shares": run.share_of_response()})


def history_specifications(styles: Sequence[Style], unit: Unit) -> dict[str, Any]:
    """Those of a page of a variant through time; `styles` are the ways in which it was measured."""
    return _specifications(
        {
            "history": history.latency_through_time(styles, unit),
            "history-share": history.share_through_time(styles),
        }
    )


def _specifications(charts: Mapping[str, alt.Chart | alt.LayerChart | alt.FacetChart]) -> dict[str, Any]:
    """With ``config``, the look of all charts, and ``log_axis``, what a logarithmic axis adds to a chart."""
    shared = {"config": CONFIG, "log_axis": {channel: log_axis(channel) for channel in ("x", "y")}}
    return {name: plain(chart) for name, chart in charts.items()} | shared
