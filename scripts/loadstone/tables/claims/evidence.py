"""What the lints look at: a scope's series beside what was found out about each of their runs; and words they share."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadstone import metadata, sql
from loadstone.archive import METADATA
from loadstone.metadata import Metadata
from loadstone.tables.scope import Scope, Series, quoted

_Row = dict[str, Any]

STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}

_SHOWN = 3  # loads or variants named one by one


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
        """Rows of ``claims_missing.sql`` of the scope's cells."""
        cells = {(each.rate, each.variant) for each in self.series}
        rows = self.scope.connection.sql(sql.load("claims_missing")).to_arrow_table().to_pylist()
        return [row for row in rows if (row["rate"], row["variant"]) in cells]

    def where(self, found: Sequence[Series]) -> str:
        """Cells in words: ``plain at 100/s``, ``every variant at every rate``, ``3 of 50 cells, such as ...``."""
        variants = list(dict.fromkeys(each.variant for each in found))
        rates = sorted({each.rate for each in found})
        if len(found) == len(self.series):
            each_rate = "every rate" if len(rates) > 1 else at(rates)
            return f"{'every variant' if len(variants) > 1 else quoted(variants[0])} at {each_rate}"
        if len(variants) == 1 or (len(rates) == 1 and len(variants) <= _SHOWN):
            return f"{listed(map(quoted, variants))} at {at(rates)}"
        first = " and ".join(f"{quoted(each.variant)} at {at([each.rate])}" for each in found[:2])
        return f"{len(found)} of {len(self.series)} cells, such as {first}"

    def about(self, found: Sequence[Series]) -> dict[str, Any]:
        """Columns of a weakness that holds for some of the scope's series."""
        return {
            "n": len(found),
            "n_of": len(self.series),
            "counted": "cells",
            "rate": only(each.rate for each in found),
            "variant": only(each.variant for each in found),
        }

    def where_runs(self, test: Callable[[_Row], Any]) -> Iterator[tuple[Series, list[_Row]]]:
        """Series with runs for which a test holds, and these."""
        for number, series in enumerate(self.series):
            if found := [run for run in self.runs_of[number] if test(run)]:
                yield series, found


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


def at(rates: Iterable[float]) -> str:
    """``100/s``, ``100, 200 and 300/s``, ``12 rates from 100 to 1200/s``."""
    known = sorted(set(rates))
    if len(known) > _SHOWN:
        return f"{len(known)} rates from {known[0]:.15g} to {known[-1]:.15g}/s"
    return f"{listed([f'{rate:.15g}' for rate in known])}/s"


def listed(texts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, noun: str) -> str:
    """``1 run``, ``1,350 runs``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def ms(time_ns: float) -> str:
    """``0.462 ms``."""
    return f"{time_ns / 1e6:.3g} ms"


def tallied(texts: Iterable[str]) -> str:
    """Texts with how often each occurs, the most frequent first: ``30 fixed, 24 unknown``."""
    return listed([f"{count:,} {text}" for text, count in Counter(texts).most_common()])


def _key(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("host", "timestamp", "variant_dir", "rate", "run"))
