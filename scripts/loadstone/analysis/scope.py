"""What conclusions are drawn from: a scope, which is one campaign by itself or one comparison.

A scope holds one `Series` per rate, variant and way of measuring, over the runs that count. Functions that draw
conclusions (`analysis/effects.py` and its like) take a scope and give rows of their table; they read no request, for
each series brings its replicates, computed once and kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb

from loadstone.analysis import reasons
from loadstone.analysis.reasons import Reason
from loadstone.archive import Campaign
from loadstone.readers import load_generators
from loadstone.stats import Replicates, estimable, requests_needed
from loadstone.tables.schema import PERCENTILES

_Row = dict[str, Any]

BLOCKS = "blocks"  # the order of a sweep in which every variant has its run in every block


@dataclass(frozen=True)
class Settings:
    """What the configuration says: `margin` as a share, `order` the canonical names of the app's declared variants.

    `over` is what each of these is built upon, in the same order.
    """

    margin: float = 0.05
    confidence: float = 0.95
    order: tuple[str, ...] = ()
    over: Mapping[str, Sequence[str]] = field(default_factory=dict)


def settings(declared: Mapping[str, Any]) -> Settings:
    """From plain values, as rules carry them."""
    return Settings(
        float(declared["margin"]), float(declared["confidence"]), tuple(declared["order"]), dict(declared["over"])
    )


def way(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """How a run was measured: runs of two ways never share a statistic, whatever a comparison allows."""
    return str(run["load_model"]), *map(str, load_generators.meaning(run["generator"]))


def grouped(runs: Sequence[_Row]) -> Iterator[list[_Row]]:
    """The runs of each variant at each rate that were measured in one way."""

    def place(run: _Row) -> tuple[Any, ...]:
        return run["rate"], run["variant"], way(run)

    for _, group in groupby(sorted(runs, key=place), key=place):
        yield list(group)


@dataclass(frozen=True)
class Series:
    """The runs of one variant at one rate, measured in one way, that figures rest on.

    `runs` are rows of table `runs`; with `evidence` ``requests`` those of which every request is known, which then
    have `replicates`. With ``reports`` there are only rows of `summaries`, one per run in the same order (`reported`);
    such runs are never pooled with others.
    """

    rate: float
    variant: str
    way: tuple[Any, ...]
    evidence: str
    runs: Sequence[_Row]
    replicates: Replicates
    reported: Sequence[_Row]

    @property
    def resolution_ns(self) -> float:
        """No difference below it means anything; 0 where that is not known."""
        return max((run["resolution_ns"] or 0.0 for run in self.runs), default=0.0)

    @property
    def blocks(self) -> tuple[tuple[str, str, int], ...] | None:
        """Campaign and number of each run in the order in which replicates draw them, where the sweep went by blocks.

        Two series of equal blocks go by pairs: their draws may be subtracted one by one. None: runs have no partners.
        """
        found = tuple((run["host"], run["timestamp"], run["run"]) for run in self.runs)
        in_blocks = all(run["plan_order"] == BLOCKS for run in self.runs) and len(set(found)) == len(found)
        return found if in_blocks and self.replicates.n_runs in (0, len(found)) else None

    def missing(self, statistic: str) -> Reason | None:
        """Why there is no statistic (``mean``, ``p99``, ...) of requests, or no interval of it; None where there is."""
        found = self.replicates
        if statistic in found.values:
            if found.n_runs < 2 or statistic in found.draws:
                return None
            return Reason(reasons.INTERVAL_TIMES_OUT, self.variant, statistic=statistic)
        probability = PERCENTILES.get(statistic)
        if probability is not None and not estimable(found.n_requests, probability):
            needed = requests_needed(probability)
            return Reason(
                reasons.TOO_FEW_REQUESTS, self.variant, statistic=statistic, value=found.n_requests, needed=needed
            )
        if found.n_timeouts:
            return Reason(reasons.TIMEOUTS, self.variant, value=found.n_timeouts)
        return Reason(reasons.NO_FIGURE, self.variant)


def _everything(_variant: str, _rate: float) -> bool:
    return True


@dataclass(frozen=True)
class Scope:
    """One campaign (`comparison` is None) or one comparison, and what it holds.

    `variants` are those that have runs here, in the order in which pages show them; `baseline` is the one that the
    comparison names, else the first of them. `margin` and `confidence` are shares. `connection` has a view per table,
    limited to the `campaigns`, with everything written that `conclude` comes after (runs, cells, ...). `over` is what
    variants are built upon, `excluded` are rows of `runs` that are. `includes` says by its variant and
    rate whether a cell of these campaigns would belong to the scope, if it had a result.
    """

    comparison: str | None
    app: str
    campaigns: Sequence[Campaign]
    variants: Sequence[str]
    baseline: str | None
    margin: float
    confidence: float
    series: Sequence[Series]
    connection: duckdb.DuckDBPyConnection
    over: Mapping[str, Sequence[str]] = field(default_factory=dict)
    excluded: Sequence[_Row] = ()
    includes: Callable[[str, float], bool] = _everything

    @property
    def key(self) -> _Row:
        """The columns `schema_findings.SCOPE_KEY` of its rows."""
        runs = [run for each in self.series for run in each.runs]
        return {
            "comparison": self.comparison,
            "app": self.app,
            "host": ", ".join(sorted({run["host"] for run in runs})),
            "timestamps": sorted({run["timestamp"] for run in runs}),
        }

    @property
    def rates(self) -> list[float]:
        return sorted({each.rate for each in self.series})

    @property
    def ways(self) -> list[tuple[Any, ...]]:
        """Ways of measuring; figures of two of them are never compared."""
        return sorted({each.way for each in self.series})

    def at(self, rate: float, way: tuple[Any, ...]) -> dict[str, Series]:
        """What was measured at one rate in one way, by variant, in the order of `variants`."""
        found = {each.variant: each for each in self.series if (each.rate, each.way) == (rate, way)}
        return {variant: found[variant] for variant in self.variants if variant in found}
