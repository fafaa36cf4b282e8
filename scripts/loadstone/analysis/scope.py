"""What conclusions are drawn from: a scope, which is one campaign by itself or one comparison.

A scope holds one `Series` per rate, variant and way of measuring, over its valid runs. Functions that draw
conclusions (`analysis/effects.py` and its like) take a scope and give rows of their table; they read no request, for
each series brings its replicates, computed once and kept.

Every two series of a scope that are compared are contrasted here, each figure once: variants relative to the baseline,
and layers. The standard errors of contrasts with the baseline are pooled per statistic, those of all others by
themselves: where the baseline is far less steady than variants, these would make the page too sure. So a figure has the
same interval wherever it stands, and the layers that are declared change no verdict relative to the baseline.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from loadstone.analysis import reasons
from loadstone.analysis.reasons import Reason
from loadstone.archive import Campaign
from loadstone.config.variants import VariantGraph
from loadstone.percentiles import ERRORS, PERCENTILES, STATISTICS
from loadstone.readers import load_generators
from loadstone.stats import Replicates, contrasts, estimable, requests_needed
from loadstone.stats.contrasts import Contrast

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
        """The columns of its rows that name the scope."""
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


Key = tuple[float, tuple[Any, ...], str, str, str]  # rate, way, the variant below, the variant, statistic


@dataclass(frozen=True)
class Place:
    """All that was measured in one way at one rate."""

    rate: float
    way: tuple[Any, ...]
    found: dict[str, Series]

    def key(self, below: str, variant: str, statistic: str) -> Key:
        """Of a contrast."""
        return self.rate, self.way, below, variant, statistic


def places(scope: Scope) -> list[Place]:
    """In the order of rates, without series that have no runs."""
    return [
        Place(rate, way, {name: each for name, each in scope.at(rate, way).items() if each.runs})
        for rate in scope.rates
        for way in scope.ways
    ]


def contrasted(scope: Scope) -> Mapping[Key, Contrast]:
    """Of all pairs and statistics that can be compared.

    Shares of failures lend each other nothing, nor do figures of which only the least is known.
    """
    found: dict[Key, Contrast] = {}
    for place in places(scope):
        for below, variant in dict.fromkeys(_pairs(scope, place)):
            pair = place.found[below], place.found[variant]
            for statistic in STATISTICS:
                if known := _contrast(pair, statistic, scope.confidence):
                    found[place.key(below, variant, statistic)] = known
    evidence = {(each.rate, each.way, each.variant): each.evidence for each in scope.series}
    kinds = {
        key: (key[4], key[1], evidence[key[0], key[1], key[3]], each.n_pairs is None, key[2] == scope.baseline)
        for key, each in found.items()
        if key[4] != ERRORS and not each.open_side
    }
    for keys in alike(kinds):
        pairs = [(below, variant) for _, _, below, variant, _ in keys]
        found.update(zip(keys, contrasts.pool_errors([found[key] for key in keys], pairs), strict=True))
    return found


def alike(kinds: Mapping[Any, Any]) -> Iterable[list[Any]]:
    """Those of one kind, which tell together by how much runs differ."""
    found = defaultdict(list)
    for each, kind in kinds.items():
        found[kind].append(each)
    return found.values()


def _pairs(scope: Scope, place: Place) -> Iterator[tuple[str, str]]:
    if scope.baseline in place.found:
        yield from ((scope.baseline, name) for name in place.found if name != scope.baseline)
    yield from ((layer.below, layer.variant) for layer in VariantGraph(scope.over, place.found).layers())


def _contrast(pair: tuple[Series, Series], statistic: str, confidence: float) -> Contrast | None:
    """None where a figure is missing, or there is one run."""
    if pair[0].evidence != pair[1].evidence or min(len(each.runs) for each in pair) < 2:
        return None
    values = [figure(each, statistic)[0] for each in pair]
    if statistic == ERRORS and values in ([0, 0], [1, 1]):
        return None
    options: dict[str, Any] = {"paired": paired(pair), "confidence": confidence}
    step = step_ns(pair) if statistic != ERRORS else 0.0
    if pair[0].evidence == "requests":
        return contrasts.contrast(pair[0].replicates, pair[1].replicates, statistic, step=step, **options)
    if None in values:
        return None
    of_runs = [reported(each, statistic) for each in pair]
    if statistic != ERRORS:
        return contrasts.contrast_of_runs(*of_runs, step=step, **options)
    requests = [np.array([row["requests"] or 0 for row in each.reported], np.float64) for each in pair]
    return contrasts.contrast_of_shares(of_runs, requests, **options)


# --- what series have ------------------------------------------------------------------------------------------------


def figure(series: Series, statistic: str) -> tuple[float | None, Reason | None]:
    """A series' figure, or why there is none."""
    if series.evidence == "requests":
        return series.replicates.values.get(statistic), series.missing(statistic)
    found = reported(series, statistic)
    if len(found) < len(series.runs) or not found.size:
        return None, Reason(reasons.NOT_REPORTED, series.variant)
    if len(found) > 1 and statistic.startswith("p"):
        return None, Reason(reasons.REPORTS_NOT_AVERAGED)
    return float(found.mean()), None


def reported(series: Series, statistic: str) -> np.ndarray:
    """What the tool reported of each run."""
    column = "success" if statistic == ERRORS else f"{statistic}_ns"
    told = np.array([row[column] for row in series.reported if row[column] is not None], np.float64)
    return 1 - told if statistic == ERRORS else told


def incomparable(statistic: str, series: Sequence[Series]) -> Reason:
    """Why figures of several runs each that are known could not be compared."""
    if statistic == ERRORS:
        return Reason(reasons.SAMPLE_SIZE_UNKNOWN)
    if 0 in [figure(each, statistic)[0] for each in series]:
        return Reason(reasons.ZERO_LATENCY)
    if any(each.evidence == "requests" for each in series):
        return Reason(reasons.ZERO_IN_OTHER_RUNS, statistic=statistic)
    return Reason(reasons.IDENTICAL_RUNS)


def paired(series: Iterable[Series]) -> bool:
    """Whether the runs of all go together."""
    blocks = {each.blocks for each in series}
    return len(blocks) == 1 and None not in blocks


def step_ns(series: Iterable[Series]) -> float:
    """The coarsest clock's."""
    return max(each.resolution_ns for each in series)
