"""Words and texts that several pages share: names of load models, figures and intervals for tables."""

from dataclasses import replace
from typing import Any

from loadstone.config.variants import Style
from loadstone.report import clock_resolution
from loadstone.report.numbers import Unit
from loadstone.report.queries import Row

SHOWN = 200  # problems and left-out runs listed one by one; beyond that their number is given

LOAD_MODELS = {
    "open": "open: requests sent on a clock",
    "closed": "closed: each user waits for the answer",
    "serial": "serial: one request after another",
}


def distinct(styles: list[Style]) -> list[Style]:
    """The same styles; variants that share a label are told apart by their name."""
    labels = [style.label for style in styles]
    return [
        replace(style, label=f"{style.label} ({style.name})") if labels.count(style.label) > 1 else style
        for style in styles
    ]


def latency_in(unit: Unit) -> Any:
    """A function for templates: a latency in ns, in steps of so many, as text in the page's unit without the symbol."""
    return lambda latency_ns, resolution_ns=None: clock_resolution.text(latency_ns, unit, resolution_ns)


def interval(cell: Row, name: str, unit: Unit) -> str:
    """The interval of one percentile as text, or why there is none."""
    if not cell["n_requests"]:
        return ""
    if not cell[f"{name}_estimable"]:
        return "too few requests"
    if cell[f"{name}_low_ns"] is None:
        return "one run" if cell["n_runs"] < 2 else _why_none(cell, name)
    ends = (clock_resolution.text(cell[f"{name}_{end}_ns"], unit, cell["resolution_ns"]) for end in ("low", "high"))
    return " – ".join(ends)


def _why_none(cell: Row, name: str) -> str:
    """Why several runs give no interval: it would reach the timeout, or the clock shows nothing but zeros."""
    if cell[f"{name}_ns"]:
        return "may time out" if cell["n_timeouts"] else "runs differ too much"
    return (
        "latencies of 0" if 0 < (cell["resolution_ns"] or 0) < clock_resolution.COARSE_NS else "too fast for the clock"
    )
