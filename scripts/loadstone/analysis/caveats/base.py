"""What a caveat is, and what its check looks at: the series of a scope, with what is known of each of their runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadstone import sql, text
from loadstone.analysis.reasons import quoted
from loadstone.analysis.scope import Scope, Series
from loadstone.archive import METADATA, metadata
from loadstone.archive.metadata import Metadata
from loadstone.percentiles import ERRORS, MEAN
from loadstone.text import listed, load_unit

_Row = dict[str, Any]

SERIOUS, LIMITS, NOTE = "serious", "limits", "note"
WEIGHTS = {
    SERIOUS: "no conclusion should be drawn from the figures concerned",
    LIMITS: "conclusions hold with a reservation",
    NOTE: "for information",
}


@dataclass(frozen=True)
class Occurrence:
    """A caveat that applies to `n` of `n_of` of what `counted` names.

    `cells` are those whose figures it concerns (`Evidence.cells`); None: all of the scope. `remedy` replaces that of
    the caveat.
    """

    weight: str
    text: str
    n: int
    n_of: int
    counted: str
    rate: float | None = None
    variant: str | None = None
    statistic: str | None = None
    remedy: str | None = None
    cells: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Caveat:
    """`when` says at which thresholds it is stated, and why; `check` yields its occurrences in a scope."""

    id: str
    heading: str
    when: str
    remedy: str
    check: Callable[["Evidence"], Iterator[Occurrence]]


def caveat(heading: str, when: str, remedy: str) -> Callable[[Callable[["Evidence"], Iterator[Occurrence]]], Caveat]:
    """Make a caveat of its check; the function's name is the code in column `claim`."""
    return lambda check: Caveat(check.__name__, heading, when, remedy, check)


@dataclass(frozen=True)
class Evidence:
    """One scope; each of its `runs` has the columns of ``claims_runs.sql`` (shape, send lag) too."""

    scope: Scope

    @cached_property
    def _runs(self) -> dict[int, list[_Row]]:
        """The valid runs by the id of their series."""
        rows = self.scope.connection.sql(sql.load("claims_runs")).to_arrow_table().to_pylist()
        by_key = {_key(row): row for row in rows}
        return {
            id(series): [run | by_key.get(_key(run), {"shapes": []}) for run in series.runs]
            for series in self.scope.series
        }

    @property
    def series(self) -> Sequence[Series]:
        return self.scope.series

    @cached_property
    def runs(self) -> list[_Row]:
        """All valid runs."""
        return [run for runs in self._runs.values() for run in runs]

    @cached_property
    def metadata(self) -> list[Metadata]:
        """The metadata of every cell with valid runs."""
        (root,) = {campaign.root for campaign in self.scope.campaigns}
        folders = sorted({run["source"].rpartition("/")[0] for run in self.runs})
        return [metadata.read(path) for folder in folders if (path := root / folder / METADATA).exists()]

    @cached_property
    def planned(self) -> list[_Row]:
        """Rows of ``claims_missing.sql`` that the scope includes, also of cells without any result."""
        rows = self.scope.connection.sql(sql.load("claims_missing")).to_arrow_table().to_pylist()
        return [row for row in rows if self.scope.includes(row["variant"], row["rate"])]

    @cached_property
    def rates(self) -> list[float]:
        """All loads of the scope, in ascending order."""
        return sorted({each.rate for each in self.series})

    def where(self, found: Sequence[Series]) -> str:
        """All these cells in words: ``“plain” at 100 requests/s``, ``every variant at every load``."""
        loads: dict[tuple[str, str], list[float]] = {}
        for each in found:
            loads.setdefault((each.variant, load_unit([each.way[0]])), []).append(each.rate)
        variants: dict[tuple[str, tuple[float, ...]], list[str]] = {}
        for (variant, unit), rates in loads.items():
            variants.setdefault((unit, tuple(sorted(rates))), []).append(variant)
        return listed(
            f"{self._named(names, rates)} {self._at(rates, unit)}" for (unit, rates), names in variants.items()
        )

    def _named(self, variants: Sequence[str], rates: Sequence[float]) -> str:
        measured = {each.variant for each in self.series if each.rate in rates}
        return "every variant" if len(measured) > 1 and measured == set(variants) else listed(map(quoted, variants))

    def _at(self, rates: Sequence[float], unit: str) -> str:
        if len(rates) == len(self.rates) > 1:
            return "at every load"
        return text.at(rates, self.rates, unit, every=True)

    def at(self, rates: Iterable[float]) -> str:
        """Loads of the scope in words, also those without a run."""
        own = set(rates)
        models = [each.way[0] for each in self.series if each.rate in own]
        unit = load_unit(models or [each.way[0] for each in self.series])
        return text.at(own, self.rates, unit, every=True)

    def cells(self, found: Iterable[Series]) -> list[_Row]:
        """Column `cells` of the table."""
        return [
            {
                "rate": each.rate,
                "variant": each.variant,
                "load_model": each.way[0],
                "generator": ", ".join(sorted({str(run["generator"]) for run in each.runs})),
            }
            for each in found
        ]

    def in_cells(self, found: Sequence[Series]) -> dict[str, Any]:
        """Fields of an `Occurrence` in some of the scope's cells."""
        return {
            "n": len(found),
            "n_of": len(self.series),
            "counted": "cells",
            "rate": common(each.rate for each in found),
            "variant": common(each.variant for each in found),
            "cells": self.cells(found),
        }

    def in_runs(self, found: Sequence[tuple[Series, Sequence[_Row]]], n_of: int) -> dict[str, Any]:
        """Fields of an `Occurrence` in some of `n_of` runs, by series."""
        n = sum(len(runs) for _, runs in found)
        return self.in_cells([series for series, _ in found]) | {"n": n, "n_of": n_of, "counted": "runs"}

    def with_runs(self, test: Callable[[_Row], Any]) -> list[tuple[Series, list[_Row]]]:
        """Series with runs that pass a test, and these runs."""
        found = ((series, [run for run in self._runs[id(series)] if test(run)]) for series in self.series)
        return [(series, runs) for series, runs in found if runs]

    def run_values(self, series: Series, statistic: str) -> Iterator[tuple[_Row, float | None]]:
        """Each run of a series with its own figure (ns); None where it has none, or only a lower limit."""
        if series.evidence == "reports":
            yield from ((run, row[f"{statistic}_ns"]) for run, row in zip(series.runs, series.reported, strict=True))
        else:
            yield from ((run, _own_figure(run, statistic)) for run in self._runs[id(series)])

    def failure_shares(self, series: Series) -> Iterator[tuple[_Row, float, int]]:
        """Each run of a series for which it is known: the share of its requests that failed, and its requests."""
        if series.evidence == "reports":
            for run, row in zip(series.runs, series.reported, strict=True):
                if row["success"] is not None and row["requests"]:
                    yield run, 1 - row["success"], row["requests"]
        elif ERRORS in series.replicates.values:
            for run in self._runs[id(series)]:
                if n_requests := run.get("n_requests"):
                    yield run, run["n_failed"] / n_requests, n_requests

    def pairs(self, variant: str) -> Iterator[tuple[Series, Series]]:
        """The baseline and a variant, wherever both were measured in one way; nothing for the baseline itself."""
        scope = self.scope
        for rate in scope.rates:
            for way in scope.ways:
                found = scope.at(rate, way)
                if variant != scope.baseline and scope.baseline in found and variant in found:
                    yield found[scope.baseline], found[variant]


def _own_figure(run: _Row, statistic: str) -> float | None:
    """What a run's own requests say; None where requests that timed out make that a lower limit."""
    censored = run.get("n_timeouts") if statistic == MEAN else run.get(f"{statistic}_censored")
    return None if censored else run.get(f"{statistic}_ns")


def common(values: Iterable[Any]) -> Any:
    """The value that all have in common; None where they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def count_text(number: int, noun: str) -> str:
    """``1 run``, ``1,350 runs``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def be(number: int) -> str:
    """``1 is``, ``2 are``."""
    return "is" if number == 1 else "are"


def _key(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("host", "timestamp", "variant_dir", "rate", "run"))
