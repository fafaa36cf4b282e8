"""What a caveat is, and the evidence that its check examines: the series of a scope and their runs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadstone import sql, text
from loadstone.analysis import Row
from loadstone.analysis.reasons import quoted
from loadstone.analysis.scope import Scope, Series, joined, run_key
from loadstone.archive import METADATA, metadata
from loadstone.archive.metadata import Metadata
from loadstone.percentiles import ERRORS, MEAN
from loadstone.tables import database
from loadstone.text import listed, load_unit

SERIOUS, LIMITS, NOTE = "serious", "limits", "note"
WEIGHTS = {
    SERIOUS: "no conclusion should be drawn from the figures concerned",
    LIMITS: "conclusions hold with reservations",
    NOTE: "for information",
}


# What caveats count -> one of them.
ITEMS = {
    "cells": "cell",
    "runs": "run",
    "rates": "load",
    "hosts": "host",
    "figures": "figure",
    "numbers": "number",
    "ways": "way",
    "versions": "version",
    "campaigns": "campaign",
    "load models": "load model",
    "load generators": "load generator",
}


@dataclass(frozen=True)
class Occurrence:
    """A caveat that applies to `n` of `n_of` cells, runs or whatever `counted` names, one of `ITEMS`.

    `cells` are those whose figures it concerns (`Evidence.cells`), None for all of the scope. `remedy` replaces that of
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
    """`when` says at which thresholds it applies, and why; `check` yields its occurrences in a scope."""

    id: str
    heading: str
    when: str
    remedy: str
    check: Callable[["Evidence"], Iterator[Occurrence]]


def caveat(heading: str, when: str, remedy: str) -> Callable[[Callable[["Evidence"], Iterator[Occurrence]]], Caveat]:
    """Turns a check into a caveat; the function's name is the code in column `claim`."""
    return lambda check: Caveat(check.__name__, heading, when, remedy, check)


@dataclass(frozen=True)
class Evidence:
    """One scope; each of its `runs` has the columns of ``claims_runs.sql`` (shape, send lag) too."""

    scope: Scope

    @cached_property
    def _runs(self) -> dict[int, list[Row]]:
        """The valid runs by the id of their series."""
        rows = database.rows(self.scope.connection, sql.load("claims_runs"))
        by_key = {run_key(row): row for row in rows}
        return {
            id(series): [run | by_key.get(run_key(run), {"shapes": []}) for run in series.runs]
            for series in self.scope.series
        }

    @property
    def series(self) -> Sequence[Series]:
        return self.scope.series

    @cached_property
    def runs(self) -> list[Row]:
        """All valid runs."""
        return [run for runs in self._runs.values() for run in runs]

    @cached_property
    def metadata(self) -> list[Metadata]:
        """The metadata of every cell with valid runs."""
        (root,) = {campaign.root for campaign in self.scope.campaigns}
        folders = sorted({run["source"].rpartition("/")[0] for run in self.runs})
        return [metadata.read(path) for folder in folders if (path := root / folder / METADATA).exists()]

    @cached_property
    def planned(self) -> list[Row]:
        """Rows of ``claims_missing.sql`` that the scope includes, also of cells without any result."""
        rows = database.rows(self.scope.connection, sql.load("claims_missing"))
        return [row for row in rows if self.scope.includes(row["variant"], row["rate"])]

    def where(self, found: Sequence[Series]) -> str:
        """These cells in words: ``“plain” at 100 requests/s``, ``every variant at every load``."""
        rates = defaultdict(list)
        for each in found:
            rates[each.variant, load_unit([each.way[0]])].append(each.rate)
        variants = defaultdict(list)
        for (variant, unit), own in rates.items():
            variants[tuple(sorted(own)), unit].append(variant)
        return listed(f"{self._named(names, own)} {self._at(own, unit)}" for (own, unit), names in variants.items())

    def _named(self, variants: Sequence[str], rates: Sequence[float]) -> str:
        measured = {each.variant for each in self.series if each.rate in rates}
        return "every variant" if len(measured) > 1 and measured == set(variants) else listed(map(quoted, variants))

    def _at(self, rates: Sequence[float], unit: str) -> str:
        known = self.scope.rates
        return "at every load" if len(rates) == len(known) > 1 else text.at(rates, known, unit, every=True)

    def at(self, rates: Iterable[float]) -> str:
        """Loads of the scope in words, also those without a run."""
        own = set(rates)
        models = [each.way[0] for each in self.series if each.rate in own]
        unit = load_unit(models or [each.way[0] for each in self.series])
        return text.at(own, self.scope.rates, unit, every=True)

    def cells(self, found: Iterable[Series]) -> list[Row]:
        """Column `cells` of the table."""
        return [
            {
                "rate": each.rate,
                "variant": each.variant,
                "load_model": each.way[0],
                "generator": joined(each.runs, "generator"),
            }
            for each in found
        ]

    def in_cells(self, found: Sequence[Series]) -> dict[str, Any]:
        """The fields of an `Occurrence` that concerns some of the scope's cells."""
        return {
            "n": len(found),
            "n_of": len(self.series),
            "counted": "cells",
            "rate": common(each.rate for each in found),
            "variant": common(each.variant for each in found),
            "cells": self.cells(found),
        }

    def in_runs(self, found: Sequence[tuple[Series, Sequence[Row]]], n_of: int) -> dict[str, Any]:
        """The fields of an `Occurrence` that concerns some of `n_of` runs, by series."""
        n = sum(len(runs) for _, runs in found)
        return self.in_cells([series for series, _ in found]) | {"n": n, "n_of": n_of, "counted": "runs"}

    def with_runs(self, test: Callable[[Row], Any]) -> list[tuple[Series, list[Row]]]:
        """Series with runs that pass a test, and these runs."""
        found = ((series, [run for run in self._runs[id(series)] if test(run)]) for series in self.series)
        return [(series, runs) for series, runs in found if runs]

    def run_values(self, series: Series, statistic: str) -> Iterator[tuple[Row, float | None]]:
        """Each run of a series with its own figure (ns); None where it is missing or a lower limit."""
        if series.evidence == "reports":
            yield from ((run, row[f"{statistic}_ns"]) for run, row in zip(series.runs, series.reported, strict=True))
        else:
            yield from ((run, _own_figure(run, statistic)) for run in self._runs[id(series)])

    def failure_shares(self, series: Series) -> Iterator[tuple[Row, float, int]]:
        """Runs of a series whose error fraction is known, with that and the number of requests."""
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
        baseline = self.scope.baseline
        for place in self.scope.places:
            if variant != baseline and baseline in place.series and variant in place.series:
                yield place.series[baseline], place.series[variant]


def _own_figure(run: Row, statistic: str) -> float | None:
    """A figure of a run's own requests; None where requests that timed out make it a lower limit."""
    censored = run.get("n_timeouts") if statistic == MEAN else run.get(f"{statistic}_censored")
    return None if censored else run.get(f"{statistic}_ns")


def common(values: Iterable[Any]) -> Any:
    """The value that all have in common; None where they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def be(number: int) -> str:
    """``1 is``, ``2 are``."""
    return "is" if number == 1 else "are"
