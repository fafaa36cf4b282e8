"""What conclusions are drawn from: a scope, which is one campaign by itself or one comparison.

A scope holds one `Series` per rate, variant and way of measuring, over its valid runs. Functions that draw
conclusions (`analysis/effects.py` and others) take a scope and return rows of their table. They read no requests: each
series has its replicates, which are computed once and stored.

`contrasted` compares each pair of series once: variants with the baseline, and layers. The standard errors of contrasts
with the baseline are pooled per statistic, separately from those of all other contrasts: where the baseline varies far
more than the variants, pooling both would make intervals too narrow. So a figure has the same interval everywhere, and
declared layers change no verdict relative to the baseline.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from loadstone.analysis import Row, reasons
from loadstone.analysis.reasons import Reason
from loadstone.archive import Campaign, plan
from loadstone.config.variants import VariantGraph
from loadstone.percentiles import ERRORS, PERCENTILES, STATISTICS
from loadstone.readers import load_generators
from loadstone.stats import Replicates, contrasts, estimable, requests_needed
from loadstone.stats.contrasts import Contrast


@dataclass(frozen=True)
class Settings:
    """From the configuration: `margin` as a share, `order` the canonical names of the app's declared variants.

    `over` names the variants that each of them is built upon, in the same order.
    """

    margin: float = 0.05
    confidence: float = 0.95
    order: Sequence[str] = ()
    over: Mapping[str, Sequence[str]] = field(default_factory=dict)


# Of runs whose `sent_by` differs and whose `sent_alike` does not. Measured: docs/load.md.
SENT_ALIKE = (
    "in one process and over as many connections, four load generators measured 1.007 times the median latency of one "
    "(95 % interval [0.989, 1.025], at 0.4 ms and 1,000 requests/s)"
)


def way(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """How a run was measured: runs measured in two ways never share a statistic, whatever a comparison allows."""
    return str(run["load_model"]), *map(str, load_generators.meaning(run["generator"]))


def grouped(runs: Sequence[Row]) -> Iterator[list[Row]]:
    """The runs of each variant at each rate that were measured in one way."""

    def key(run: Row) -> tuple[Any, ...]:
        return run["rate"], run["variant"], way(run)

    for _, group in groupby(sorted(runs, key=key), key=key):
        yield list(group)


def joined(runs: Iterable[Row], column: str) -> str:
    """The different values of a column, sorted, in one text."""
    return ", ".join(sorted({str(run[column]) for run in runs}))


def run_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Identifies a run within an app, in the rows of any table."""
    return tuple(row[name] for name in ("host", "timestamp", "variant_dir", "rate", "run"))


@dataclass(frozen=True)
class Series:
    """The valid runs of one variant at one rate, measured in one way.

    `runs` are rows of table `runs`. With the `evidence` ``requests`` every request of them is known, and there are
    `replicates`. With ``reports`` there are only rows of `summaries`, one per run in the same order (`reported`); such
    runs are never pooled with others.
    """

    rate: float
    variant: str
    way: tuple[Any, ...]
    evidence: str
    runs: Sequence[Row]
    replicates: Replicates
    reported: Sequence[Row]

    @property
    def resolution_ns(self) -> float:
        """The coarsest step of the runs' clocks: smaller differences mean nothing. 0 where it is unknown."""
        return max((run["resolution_ns"] or 0.0 for run in self.runs), default=0.0)

    @property
    def blocks(self) -> tuple[tuple[str, str, int, int], ...] | None:
        """Campaign, its part, and number of each run in the order in which replicates draw them, of a sweep in blocks.

        The runs of two series with equal blocks are paired: their draws may be subtracted one by one. None: not paired.
        """
        found = tuple((run["host"], run["timestamp"], run["part"], run["run"]) for run in self.runs)
        in_blocks = all(run["plan_order"] in plan.RANDOM for run in self.runs) and len(set(found)) == len(found)
        return found if in_blocks and self.replicates.n_runs in (0, len(found)) else None

    def missing(self, statistic: str) -> Reason | None:
        """Why a statistic (``mean``, ``p99``, ...) of requests or its interval is missing; None where both exist."""
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


def protocols(series: Iterable[Series]) -> set[str]:
    """The protocols by which the runs of these series are known to be sent."""
    return {run["protocol"] for each in series for run in each.runs if run["protocol"]}


def unlike(series: Sequence[Series]) -> Reason | None:
    """Why figures of these series are not compared with each other, whatever they are."""
    if len({each.evidence for each in series}) > 1:
        return Reason(reasons.EVIDENCE_DIFFERS)
    return Reason(reasons.PROTOCOLS_DIFFER) if len(protocols(series)) > 1 else None


Key = tuple[float, tuple[Any, ...], str, str, str]  # rate, way, the variant below, the variant, statistic


@dataclass(frozen=True)
class Place:
    """All series of one rate and way of measuring, by variant."""

    rate: float
    way: tuple[Any, ...]
    series: dict[str, Series]

    def key(self, below: str, variant: str, statistic: str) -> Key:
        """Identifies a contrast."""
        return self.rate, self.way, below, variant, statistic


def _everything(_variant: str, _rate: float) -> bool:
    return True


@dataclass(frozen=True)
class Scope:
    """One campaign (`comparison` is None) or one comparison, with its series.

    `variants` are those with runs, in the order in which pages show them; `baseline` is the one that the comparison
    names, else the first. `margin` and `confidence` are shares. `connection` has a view per table, limited to the
    `campaigns`; all tables that conclusions depend on are written. `over` names the variants that each variant is built
    upon, `excluded` are rows of `runs`. `includes` says whether a cell of these campaigns, given by variant and rate,
    would belong to the scope if it had a result.
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
    excluded: Sequence[Row] = ()
    includes: Callable[[str, float], bool] = _everything

    @property
    def key(self) -> Row:
        """The columns that identify the scope."""
        runs = [run for each in self.series for run in each.runs]
        return {
            "comparison": self.comparison,
            "app": self.app,
            "host": joined(runs, "host"),
            "timestamps": sorted({run["timestamp"] for run in runs}),
        }

    @cached_property
    def rates(self) -> list[float]:
        return sorted({each.rate for each in self.series})

    @cached_property
    def ways(self) -> list[tuple[Any, ...]]:
        """Ways of measuring; figures measured in two ways are never compared."""
        return sorted({each.way for each in self.series})

    @cached_property
    def places(self) -> list[Place]:
        """In the order of rates, with variants in the order of `variants`; without series that have no runs."""
        found = {(each.rate, each.way, each.variant): each for each in self.series if each.runs}
        return [
            Place(rate, way, {name: found[rate, way, name] for name in self.variants if (rate, way, name) in found})
            for rate in self.rates
            for way in self.ways
        ]

    @cached_property
    def contrasts(self) -> Mapping[Key, Contrast]:
        """Those of `STATISTICS`, for effects and layers."""
        return contrasted(self, STATISTICS)


def contrasted(scope: Scope, statistics: Sequence[str]) -> Mapping[Key, Contrast]:
    """The contrast of every pair and statistic that can be compared.

    Errors are pooled, but not those of error fractions, nor those of contrasts of which only a lower limit is known.
    """
    found: dict[Key, Contrast] = {}
    pooled = defaultdict(list)
    for place in scope.places:
        for below, variant in dict.fromkeys(_pairs(scope, place)):
            pair = place.series[below], place.series[variant]
            for statistic in statistics:
                if known := _contrast(pair, statistic, scope.confidence):
                    found[key := place.key(below, variant, statistic)] = known
                    if statistic != ERRORS and not known.open_side:
                        is_paired, to_baseline = known.n_pairs is not None, below == scope.baseline
                        pooled[statistic, place.way, pair[1].evidence, is_paired, to_baseline].append(key)
    for keys in pooled.values():
        pairs = [(below, variant) for _, _, below, variant, _ in keys]
        found.update(zip(keys, contrasts.pool_errors([found[key] for key in keys], pairs), strict=True))
    return found


def _pairs(scope: Scope, place: Place) -> Iterator[tuple[str, str]]:
    if scope.baseline in place.series:
        yield from ((scope.baseline, name) for name in place.series if name != scope.baseline)
    yield from ((layer.below, layer.variant) for layer in VariantGraph(scope.over, place.series).layers())


def _contrast(pair: tuple[Series, Series], statistic: str, confidence: float) -> Contrast | None:
    """None where a figure is missing, or one side has only one run."""
    if unlike(pair) or min(len(each.runs) for each in pair) < 2:
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
    """The figure of a series, or why it is missing."""
    if series.evidence == "requests":
        return series.replicates.values.get(statistic), series.missing(statistic)
    found = reported(series, statistic)
    if len(found) < len(series.runs) or not found.size:
        return None, Reason(reasons.NOT_REPORTED, series.variant)
    if len(found) > 1 and statistic.startswith("p"):
        return None, Reason(reasons.REPORTS_NOT_AVERAGED)
    return float(found.mean()), None


def reported(series: Series, statistic: str) -> np.ndarray:
    """The figures of single runs as reported by the tool, of those that have one."""
    column = "success" if statistic == ERRORS else f"{statistic}_ns"
    found = np.array([row[column] for row in series.reported if row[column] is not None], np.float64)
    return 1 - found if statistic == ERRORS else found


def incomparable(statistic: str, series: Sequence[Series]) -> Reason:
    """Why figures could not be compared although both are known and of several runs."""
    if statistic == ERRORS:
        return Reason(reasons.SAMPLE_SIZE_UNKNOWN)
    if 0 in [figure(each, statistic)[0] for each in series]:
        return Reason(reasons.ZERO_LATENCY)
    if any(each.evidence == "requests" for each in series):
        return Reason(reasons.ZERO_IN_OTHER_RUNS, statistic=statistic)
    return Reason(reasons.IDENTICAL_RUNS)


def paired(series: Iterable[Series]) -> bool:
    """Whether the runs of all these series are paired (`Series.blocks`)."""
    blocks = {each.blocks for each in series}
    return len(blocks) == 1 and None not in blocks


def step_ns(series: Iterable[Series]) -> float:
    """The step of the coarsest clock."""
    return max(each.resolution_ns for each in series)
