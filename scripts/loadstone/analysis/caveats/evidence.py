"""What the lints look at: a scope's series beside what was found out about each of their runs; and words they share."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadstone import sql
from loadstone import text as load_words
from loadstone.analysis.scope import Scope, Series, quoted
from loadstone.archive import METADATA, metadata
from loadstone.archive.metadata import Metadata
from loadstone.stats.bootstrap import ERRORS
from loadstone.text import listed, load_unit

_Row = dict[str, Any]

STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}


@dataclass(frozen=True)
class Evidence:
    """One scope; each of its `runs` has the columns of ``claims_runs.sql`` (shape, send lag) too."""

    scope: Scope

    @cached_property
    def runs_of(self) -> dict[int, list[_Row]]:
        """The runs that count, by the number of their series."""
        rows = self.scope.connection.sql(sql.load("claims_runs")).to_arrow_table().to_pylist()
        found = {_key(row): row for row in rows}
        return {
            number: [run | found.get(_key(run), {"shapes": []}) for run in series.runs]
            for number, series in enumerate(self.scope.series)
        }

    @property
    def series(self) -> Sequence[Series]:
        return self.scope.series

    @cached_property
    def runs(self) -> list[_Row]:
        """All runs that count."""
        return [run for runs in self.runs_of.values() for run in runs]

    @cached_property
    def described(self) -> list[Metadata]:
        """The metadata of every cell with runs that count."""
        (root,) = {campaign.root for campaign in self.scope.campaigns}
        folders = sorted({run["source"].rpartition("/")[0] for run in self.runs})
        return [metadata.read(path) for folder in folders if (path := root / folder / METADATA).exists()]

    @cached_property
    def missing(self) -> list[_Row]:
        """Rows of ``claims_missing.sql`` that the scope asks for, also of cells without any result."""
        rows = self.scope.connection.sql(sql.load("claims_missing")).to_arrow_table().to_pylist()
        return [row for row in rows if self.scope.asks(row["variant"], row["rate"])]

    @cached_property
    def rates(self) -> list[float]:
        """All loads of the scope, in ascending order."""
        return sorted({each.rate for each in self.series})

    def where(self, found: Sequence[Series]) -> str:
        """All these cells in words: ``“plain” at 100 requests/s``, ``every variant at every load``."""
        loads: dict[tuple[str, str], list[float]] = {}
        for each in found:
            loads.setdefault((each.variant, load_unit([each.way[0]])), []).append(each.rate)
        alike: dict[tuple[str, tuple[float, ...]], list[str]] = {}
        for (variant, unit), rates in loads.items():
            alike.setdefault((unit, tuple(sorted(rates))), []).append(variant)
        return listed(f"{self._named(names, rates)} {self._at(rates, unit)}" for (unit, rates), names in alike.items())

    def _named(self, variants: Sequence[str], rates: Sequence[float]) -> str:
        there = {each.variant for each in self.series if each.rate in rates}
        return "every variant" if len(there) > 1 and there == set(variants) else listed(map(quoted, variants))

    def _at(self, rates: Sequence[float], unit: str) -> str:
        if len(rates) == len(self.rates) > 1:
            return "at every load"
        return load_words.at(rates, self.rates, unit, every=True)

    def at(self, rates: Iterable[float]) -> str:
        """Loads of the scope in words, also such as have no run."""
        own = set(rates)
        models = [each.way[0] for each in self.series if each.rate in own]
        unit = load_unit(models or [each.way[0] for each in self.series])
        return load_words.at(own, self.rates, unit, every=True)

    def cells(self, found: Iterable[Series]) -> list[_Row]:
        """What column `cells` of the table holds of series."""
        return [
            {
                "rate": each.rate,
                "variant": each.variant,
                "load_model": each.way[0],
                "generator": ", ".join(sorted({str(run["generator"]) for run in each.runs})),
            }
            for each in found
        ]

    def about(self, found: Sequence[Series]) -> dict[str, Any]:
        """Columns of a weakness that holds for some of the scope's series."""
        return {
            "n": len(found),
            "n_of": len(self.series),
            "counted": "cells",
            "rate": only(each.rate for each in found),
            "variant": only(each.variant for each in found),
            "cells": self.cells(found),
        }

    def where_runs(self, test: Callable[[_Row], Any]) -> Iterator[tuple[Series, list[_Row]]]:
        """Series with runs for which a test holds, and these."""
        for number, series in enumerate(self.series):
            if found := [run for run in self.runs_of[number] if test(run)]:
                yield series, found

    def of_runs(self, series: Series, statistic: str) -> Iterator[tuple[_Row, float | None]]:
        """Each run of a series with a figure of its own in ns; None where it has none, or it is only a least value."""
        if series.evidence == "reports":
            yield from ((run, row[f"{statistic}_ns"]) for run, row in zip(series.runs, series.reported, strict=True))
            return
        number = next(number for number, each in enumerate(self.series) if each is series)
        yield from ((run, run.get(f"run_{statistic}_ns")) for run in self.runs_of[number])

    def failed(self, series: Series) -> Iterator[tuple[_Row, float, int]]:
        """Each run of a series of which that is known: the share of its requests that failed, and how many it had."""
        if series.evidence == "reports":
            for run, row in zip(series.runs, series.reported, strict=True):
                if row["success"] is not None and row["requests"]:
                    yield run, 1 - row["success"], row["requests"]
        elif ERRORS in series.replicates.values:
            number = next(number for number, each in enumerate(self.series) if each is series)
            for run in self.runs_of[number]:
                if n_requests := run.get("n_requests"):
                    yield run, run["n_failed"] / n_requests, n_requests

    def beside_baseline(self, variant: str) -> Iterator[tuple[Series, Series]]:
        """The baseline and a variant, wherever both were measured in one way; nothing for the baseline itself."""
        scope = self.scope
        for rate in scope.rates:
            for way in scope.ways:
                found = scope.at(rate, way)
                if variant != scope.baseline and scope.baseline in found and variant in found:
                    yield found[scope.baseline], found[variant]


def value(series: Series, statistic: str) -> float | None:
    """A figure of a series; of several reports only the mean."""
    if series.evidence == "requests":
        return series.replicates.values.get(statistic)
    told = [row[f"{statistic}_ns"] for row in series.reported]
    if not told or None in told or (len(told) > 1 and statistic != "mean"):
        return None
    return float(sum(told) / len(told))


def only(values: Iterable[Any]) -> Any:
    """The value that all share; None where they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def counted(number: int, noun: str) -> str:
    """``1 run``, ``1,350 runs``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def tallied(texts: Iterable[str]) -> str:
    """Texts with how often each occurs, the most frequent first: ``30 fixed, 24 unknown``."""
    return listed([f"{count:,} {text}" for text, count in Counter(texts).most_common()])


def _key(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("host", "timestamp", "variant_dir", "rate", "run"))
