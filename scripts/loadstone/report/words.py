"""Words and texts that several pages share: names of load models, figures and intervals for tables."""

from dataclasses import replace
from typing import Any

from loadstone.report import coarse, page_data
from loadstone.report.numbers import Unit
from loadstone.report.queries import Row
from loadstone.variants import Style

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
    return lambda latency_ns, resolution_ns=None: coarse.text(latency_ns, unit, resolution_ns)


def interval(cell: Row, name: str, unit: Unit) -> str:
    """The interval of one percentile as text, or why there is none."""
    if not cell["n_requests"]:
        return ""
    if not cell[f"{name}_estimable"]:
        return "too few requests"
    if cell[f"{name}_low_ns"] is None:
        # Of several runs there is none where it would reach what timed out, or where the clock shows nothing but zeros.
        zeros = "latencies of 0" if 0 < (cell["resolution_ns"] or 0) < coarse.COARSE_NS else "too fast for the clock"
        return "one run" if cell["n_runs"] < 2 else "may time out" if cell[f"{name}_ns"] else zeros
    if page_data.interval(cell, name, unit) == (None, None):
        return "too few runs"
    ends = (coarse.text(cell[f"{name}_{end}_ns"], unit, cell["resolution_ns"]) for end in ("low", "high"))
    return " – ".join(ends)
