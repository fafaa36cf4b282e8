"""The charts of the site: one function per chart, data in, Altair chart out.

A page holds each chart's specification once, over data sets that its script fills by name: ``rows`` (their fields are
named in each function), ``labels`` (variant, label, y in pixels: the variants' names at the ends of their
lines), ``knees`` and ``runs`` (what single runs have). Latencies are in the page's unit, loads in requests/s, shares in
percent. ``usermeta.axes`` says what an axis shows (``load``, ``latency``, ``other`` or ``fixed``), for the reader's
choice of linear and logarithmic axes; ``usermeta.rows`` is true where each row has a line of the picture to itself.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts.base import CONFIG, Load, log_axis, plain
from loadstone.report.charts.distributions import latency_by_time_and_load, percentiles_of_variants
from loadstone.report.charts.effects import added_by_layers, errors_to_baseline, ratio_to_baseline, shift_to_baseline
from loadstone.report.charts.history import latency_through_time, share_through_time
from loadstone.report.charts.load import (
    latency_across_load,
    share_across_load,
    success_latency_across_load,
)
from loadstone.report.charts.reported import fit_line, percentile_curves, reported_across_load
from loadstone.report.charts.run import (
    latency_over_time,
    run_distribution,
    run_histogram,
    run_request_bins,
    run_requests,
    share_of_response,
    use_across_load,
    use_over_time,
)
from loadstone.report.numbers import Unit

__all__ = ["Load", "fit_specification", "history_specifications", "specifications", "trace_specifications"]

CONCLUDED = ("effects-ratio", "effects-shift", "effects-errors", "layers")
# Of those that a page of a comparison has, too.
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
# What all charts of a page share: their looks, and what the reader's choice of a logarithmic axis adds to one.
_SHARED = {"config": CONFIG, "log_axis": {channel: log_axis(channel) for channel in ("x", "y")}}
_USED = {"cpu": "CPU (millicores)", "memory": "Memory (MiB)"}


def specifications(styles: Sequence[Style], unit: Unit, load: Load) -> dict[str, Any]:
    """The Vega-Lite specification of every chart by name, and ``config`` and ``log_axis``, which all share."""
    made: dict[str, alt.Chart | alt.LayerChart | alt.FacetChart] = {
        "latency": latency_across_load(styles, unit, load),
        "success": success_latency_across_load(styles, unit, load),
        "failed": share_across_load(styles, load, "Failed requests (%)"),
        "errors": share_across_load(styles, load, "Share of requests (%)"),
        "time": latency_over_time(styles, unit),
        "cdf": run_distribution(unit),
        "points": run_requests(unit),
        "bins": run_request_bins(unit),
        "histogram": run_histogram(unit),
        "reported": reported_across_load(styles, unit, load),
        "percentiles": percentile_curves(styles, unit),
        "heat": latency_by_time_and_load(styles, unit, load),
        "curves": percentiles_of_variants(styles, unit),
        "effects-errors": errors_to_baseline(styles, load),
        "effects-ratio": ratio_to_baseline(styles, load),
        "effects-shift": shift_to_baseline(styles, load, unit),
        "layers": added_by_layers(styles, load, unit),
        **{f"use-{what}": use_across_load(styles, load, title) for what, title in _USED.items()},
        **{f"use-time-{what}": use_over_time(styles, title) for what, title in _USED.items()},
    }
    return {name: plain(chart) for name, chart in made.items()} | _SHARED


def fit_specification(styles: Sequence[Style], across: str, up: str) -> dict[str, Any]:
    """The specification of one line's chart."""
    return plain(fit_line(styles, across, up))


def trace_specifications() -> dict[str, Any]:
    """Those of a page of traces."""
    return {"shares": plain(share_of_response())} | _SHARED


def history_specifications(styles: Sequence[Style], unit: Unit) -> dict[str, Any]:
    """Those of a page of a variant through time; `styles` are the ways in which it was measured."""
    made = {
        "history": latency_through_time(styles, unit),
        "history-share": share_through_time(styles),
    }
    return {name: plain(chart) for name, chart in made.items()} | _SHARED
