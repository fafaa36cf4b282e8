"""What a page of figures hands to its script: latencies in the page's unit, shares as fractions.

An estimate is [value, low, high, estimable]; low and high are None where there is no interval or no use in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone import stats
from loadstone.config.variants import Style
from loadstone.report import colours
from loadstone.report.numbers import Unit
from loadstone.report.queries import Row
from loadstone.tables.schema import PERCENTILES

Estimate = list[float | bool | None]
Means = Mapping[str, tuple[float | None, float | None]]

_SHOWN = ("p50", "p90", "p99")
_WIDEST = 100


def variants(styles: Sequence[Style]) -> list[dict[str, str]]:
    """The variants in the order of charts and tables, with their colours on a light and on a dark page."""
    return [
        {
            "name": style.name,
            "label": style.label,
            "light": colours.on_light(style.colour),
            "dark": colours.on_dark(style.colour),
        }
        for style in styles
    ]


def cell(row: Row, unit: Unit, means: Means, ok_means: Means) -> dict[str, Any]:
    """One load and variant; `means` and those of code 200 alone are (mean, standard deviation) in ns, by name."""
    requests, ok_requests = row["n_requests"] or 0, row["ok_n_requests"] or 0
    every = {
        name: [unit.of(row[f"{name}_ns"]), *interval(row, name, unit), bool(row[f"{name}_estimable"])]
        for name in _SHOWN
    }
    successful = {
        name: [unit.of(row[f"ok_{name}_ns"]), None, None, stats.estimable(ok_requests, PERCENTILES[name])]
        for name in _SHOWN
    }
    return {
        "rate": row["rate"],
        "variant": row["variant"],
        "runs": row["n_runs"],
        "requests": requests,
        "ok_requests": ok_requests,
        "all": every | {name: _band(*values, unit) for name, values in means.items()},
        "ok": successful | {name: _band(*values, unit) for name, values in ok_means.items()},
        "failed": [row["error_fraction"], row["error_fraction_std"]],
    }


def interval(row: Row, name: str, unit: Unit) -> tuple[float | None, float | None]:
    """The interval of one percentile; (None, None) where there is none, or the runs are too few for it.

    No reader could do anything with the interval of a few runs that differ wildly, in numbers as in a picture.
    """
    low, high = unit.of(row[f"{name}_low_ns"]), unit.of(row[f"{name}_high_ns"])
    return (None, None) if low is None or high is None or high > _WIDEST * low else (low, high)


def _band(mean_ns: float | None, std_ns: float | None, unit: Unit) -> Estimate:
    """A mean with one standard deviation to either side; no latency is below zero."""
    if mean_ns is None:
        return [None, None, None, False]
    low_ns = max(0.0, mean_ns - (std_ns or 0.0))
    return [unit.of(mean_ns), unit.of(low_ns), unit.of(mean_ns + (std_ns or 0.0)), True]
