"""The charts of the site: each function of the modules here returns one Altair chart.

A page holds the specification of each chart once, over data sets that its script fills by name: ``rows`` (each function
names their fields), ``labels`` (variant, label, y in pixels: the variants' names at the ends of their lines), ``knees``
and ``runs`` (figures of single runs). Latencies are in the page's unit, loads in requests/s, shares in percent.
``usermeta.axes`` says what an axis shows (``load``, ``latency``, ``other`` or ``fixed``), for the reader's choice of
linear and logarithmic axes; ``usermeta.rows`` is true where each row is drawn on a line of its own.

Pages differ in their variants, unit and loads alone, and Altair takes longer for the charts than a page for all the
rest. So they are made once, with placeholders for these, which each page fills in.
"""

import hashlib
import json
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from loadstone.archive import durable
from loadstone.config.variants import Style
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
_TICKS = 10
_LETTERS = 32  # of a title that fit along the height of a small chart, and below one on a phone


@dataclass(frozen=True)
class Load:
    """The loads of a page, and what their numbers count: requests/s or users."""

    rates: tuple[float, ...]
    unit: str = "requests/s"

    @property
    def title(self) -> str:
        """The title of an axis of loads."""
        return f"Load ({self.unit})"


def specifications(styles: Sequence[Style], unit: Unit, loads: Load) -> dict[str, Any]:
    """The Vega-Lite specification of every chart by name, and what all share.

    The latter are ``config``, the look of all charts, and ``log_axis``, what a logarithmic axis adds to a chart.
    """
    return _filled("page", styles, unit=unit.symbol, loads=loads)


def fit_specification(styles: Sequence[Style], across: str, up: str) -> dict[str, Any]:
    """The specification of one fitted line's chart; `across` and `up` are the titles of its axes."""
    specification: dict[str, Any] = _filled("fit", styles, titles=(across, up))["fit"]
    return specification


def trace_specifications() -> dict[str, Any]:
    """Those of the page of a trace dump."""
    return _filled("trace", ())


def history_specifications(styles: Sequence[Style], unit: Unit) -> dict[str, Any]:
    """Those of a page of a variant over time; `styles` are the ways in which it was measured."""
    return _filled("history", styles, unit=unit.symbol)


# --- placeholders -----------------------------------------------------------------------------------------------------

# Characters that Unicode leaves to private use.
_STYLES = [Style(f"\ue000{pattern}", f"\ue001{pattern}", "", pattern) for pattern in range(4)]
_NAMES, _LABELS = [style.name for style in _STYLES], [style.label for style in _STYLES]
_UNIT, _LOAD_UNIT, _TITLES = "\ue002", "\ue003", ("\ue004", "\ue005")
_LOADS = Load((-1.0,), _LOAD_UNIT)


def _filled(
    page: str, styles: Sequence[Style], *, unit: str = "", loads: Load = _LOADS, titles: Sequence[str] = ("", "")
) -> dict[str, Any]:
    """The specifications of a kind of page with its values in the places of placeholders."""
    texts = str.maketrans({_UNIT: unit, _LOAD_UNIT: loads.unit, **dict(zip(_TITLES, titles, strict=True))})
    ticks = list(loads.rates) if len(loads.rates) <= _TICKS else []
    lists = [(list(_LOADS.rates), ticks), (_LABELS, [style.label for style in styles])]
    lists += [([place], textwrap.wrap(title, _LETTERS)) for place, title in zip(_TITLES, titles, strict=True)]
    patterned = any(style.pattern for style in styles)

    def filled(node: Any) -> Any:
        if isinstance(node, str):
            return node if node.isascii() else node.translate(texts)
        if isinstance(node, list):
            return next((given for place, given in lists if node == place), [filled(each) for each in node])
        if not isinstance(node, dict):
            return node
        if node.get("domain") == _NAMES:
            return node | {"domain": [style.name for style in styles], "range": range_of(node["range"])}
        return {name: filled(each) for name, each in node.items() if not left_out(name, each)}

    def range_of(kinds: list[Any]) -> list[Any]:
        if str(kinds[0]).startswith("var("):  # --variant-0, --variant-1, ...
            return [kinds[0].replace("0", str(position)) for position in range(len(styles))]
        return [kinds[style.pattern % len(kinds)] for style in styles]

    def left_out(name: str, node: Any) -> bool:
        if name in {"strokeDash", "shape"}:
            return not patterned and isinstance(node, dict) and node.get("scale", {}).get("domain") == _NAMES
        return name == "values" and node == list(_LOADS.rates) and not ticks

    made: dict[str, Any] = filled(_with_placeholders()[page])
    return made


@cache
def _with_placeholders() -> dict[str, Any]:
    """By kind of page. They are kept with the compiled modules, until the code of charts or Altair changes."""
    code = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256(repr((code, version("altair"))).encode()).hexdigest()
    file = Path(cache_from_source(__file__)).with_name("specifications.json")
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_bytes())
        if kept["digest"] == digest:
            return dict(kept["specifications"])
    made = altair_specifications(_STYLES, _UNIT, _LOADS, _TITLES)
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)  # none with PYTHONDONTWRITEBYTECODE
        durable.replace(file, json.dumps({"digest": digest, "specifications": made}).encode())
    return made


def altair_specifications(
    styles: Sequence[Style], unit: str, loads: Load, titles: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Those that Altair makes, by kind of page; `unit` is a symbol, `titles` are those of the axes of a fitted line."""
    from loadstone.report.charts import base, distributions, effects, history, load, run  # noqa: PLC0415 - takes long

    usage = {"cpu": "CPU (millicores)", "memory": "Memory (MiB)"}
    pages: dict[str, dict[str, Any]] = {
        "page": {
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
            "percentiles": distributions.reported_percentile_curves(styles, unit),
            "heat": distributions.latency_by_time_and_load(styles, unit, loads),
            "curves": distributions.percentile_curves(styles, unit),
            "dumbbell": effects.dumbbells(styles, loads, unit),
            "effects-errors": effects.errors_to_baseline(styles, loads),
            "effects-ratio": effects.ratio_to_baseline(styles, loads),
            "effects-shift": effects.shift_to_baseline(styles, loads, unit),
            "layers": effects.added_by_layers(styles, loads, unit),
            **{f"use-{what}": run.use_across_load(styles, loads, title) for what, title in usage.items()},
            **{f"use-time-{what}": run.use_over_time(styles, title) for what, title in usage.items()},
        },
        "fit": {"fit": load.fit_line(styles, *titles)},
        "trace": {"shares": run.share_of_response()},
        "history": {
            "history": history.latency_through_time(styles, unit),
            "history-share": history.share_through_time(styles),
        },
    }
    shared = {"config": base.CONFIG, "log_axis": {channel: base.log_axis(channel) for channel in ("x", "y")}}
    return {
        page: {name: base.plain(chart) for name, chart in charts.items()} | shared for page, charts in pages.items()
    }
