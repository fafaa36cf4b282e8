"""Every two series of a scope that are compared, each figure once: variants beside the baseline, and layers.

By how much runs differ, contrasts with the baseline of one statistic tell together, and all others by themselves: where
the baseline is far less steady than variants, these would make a page too sure of what stands beside it. So a figure
has the same interval wherever it stands, and what variants are built upon changes no verdict beside the baseline.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadstone.analysis import reasons
from loadstone.analysis.reasons import Reason
from loadstone.analysis.scope import Scope, Series
from loadstone.config.variants import VariantGraph
from loadstone.stats import contrasts
from loadstone.stats.bootstrap import ERRORS
from loadstone.stats.contrasts import Contrast

STATISTICS = ("mean", "p50", "p90", "p99", ERRORS)

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
