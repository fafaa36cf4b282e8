"""Rows of `effects` or `interactions` that one sentence tells of, and how their figures are written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.report import clock_resolution
from loadstone.report.numbers import Unit, share
from loadstone.report.queries import Row
from loadstone.text import at, load_unit

STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99", "error_fraction": "share of failures"}
LEADING = ("p50", "mean", "p90", "p99")  # which figure stands for all, if it can


@dataclass(frozen=True)
class Group:
    """What is said in one sentence: rows of one variant with one verdict, among all its `rates` and `ways`."""

    rows: Sequence[Row]
    rates: Sequence[float]
    measured: str  # how, where a scope holds several ways of measuring
    names: Mapping[str, str]
    unit: Unit
    resolution_ns: float | None

    def label(self, column: str) -> str:
        return label(self.names, self.rows[0][column])

    @property
    def by_statistic(self) -> dict[str, list[Row]]:
        found = {name: [row for row in self.rows if row["statistic"] == name] for name in STATISTICS}
        return {name: rows for name, rows in found.items() if rows}

    @property
    def load_unit(self) -> str:
        return load_unit(row["load_model"] for row in self.rows)

    def at(self, rows: Sequence[Row]) -> str:
        return at([row["rate"] for row in rows], self.rates, self.load_unit)

    def latencies(self, values_ns: Iterable[float]) -> str:
        """From the least to the greatest, with the unit; in whole steps of a coarse clock."""
        text = spanned(values_ns, lambda value: clock_resolution.text(value, self.unit, self.resolution_ns))
        return f"{text} {self.unit.symbol}"


def label(labels: Mapping[str, str], name: str) -> str:
    """What pages call a variant."""
    return labels.get(name, name)


def spanned(values: Iterable[float], text: Any) -> str:
    """From the least to the greatest; one text where both read alike."""
    known = sorted(values)
    return " to ".join(dict.fromkeys((text(known[0]), text(known[-1]))))


def leading(rows: Sequence[Row]) -> list[Row]:
    """Those of the figure that stands for all."""
    first = min((row["statistic"] for row in rows), key=LEADING.index)
    return [row for row in rows if row["statistic"] == first]


def interval_name(rows: Sequence[Row]) -> str:
    """``95 % interval``, of several rows ``95 % intervals within``."""
    return f"{share(rows[0]['confidence'])} interval{'s within' if len(rows) > 1 else ''}"


def widest(rows: Sequence[Row], column: str) -> list[float] | None:
    """From the lowest end of an interval to the highest; None where one of them has none."""
    lows = [row[f"{column}_low"] for row in rows]
    highs = [row[f"{column}_high"] for row in rows]
    if any(bound is None for bound in (*lows, *highs)):
        return None
    return [min(lows), max(highs)]
