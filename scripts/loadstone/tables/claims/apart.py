"""Weaknesses of runs that do not agree: campaigns that are joined, and single runs far from their siblings.

Campaigns are compared by the logarithms of their runs' figures, corrected for all figures of the scope by Hommel's
method; a difference within the margin of equivalence is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.stats import families
from loadstone.stats.bootstrap import Floats
from loadstone.stats.homogeneity import p_alike, p_same_difference
from loadstone.tables.claims.declared import LIMITS, SERIOUS, Weakness
from loadstone.tables.claims.evidence import STATISTICS, Evidence, counted, ms
from loadstone.tables.scope import Series, quoted

_Campaign = tuple[str, str]  # host and timestamp
_Groups = Mapping[_Campaign, Floats]  # logarithms of a figure in ns, by campaign


@dataclass(frozen=True)
class _Apart:
    """A figure that campaigns tell unlike, of one variant or (`baseline`) beside another; in all, `by` so many times.

    `least` and `most` are the campaigns that tell it so, with what they tell: ns, or a ratio.
    """

    series: Series
    baseline: Series | None
    statistic: str
    p: float
    told: Mapping[_Campaign, float]

    @property
    def by(self) -> float:
        return max(self.told.values()) / min(self.told.values())

    def text(self) -> str:
        """Where it is least and where most."""
        show = ms if self.baseline is None else lambda ratio: f"{ratio:.3g} times"
        ends = [one(self.told, key=self.told.__getitem__) for one in (min, max)]
        hosts = len({host for host, _ in self.told}) > 1
        return " and ".join(f"{show(self.told[end])} in {f'{end[0]} ' if hosts else ''}{end[1]}" for end in ends)


def other_campaigns(evidence: Evidence) -> Iterator[Weakness]:
    """Variants that the baseline's campaigns do not have, or that have others."""
    for variant in evidence.scope.variants:
        pairs = [pair for pair in evidence.beside_baseline(variant) if _campaigns(pair[0]) != _campaigns(pair[1])]
        if pairs:
            others = [other for _, other in pairs]
            text = (
                f"{quoted(variant)} and {quoted(evidence.scope.baseline or '')} are not of the same campaigns "
                f"{evidence.at(each.rate for each in others)}: what changed between these may be what differs."
            )
            yield Weakness("other_campaigns", LIMITS, text, **evidence.about(others))


def campaigns_disagree(evidence: Evidence) -> Iterator[Weakness]:
    """Figures of a variant, and differences of two, that are not the same in all campaigns."""
    shifts = _sure(evidence, list(_shifts(evidence)))
    told = [each.series for each in shifts]
    levels = [each for each in _sure(evidence, list(_levels(evidence))) if not _among(each.series, told)]
    if shifts:
        worst, found = max(shifts, key=lambda each: each.by), _series(shifts)
        text = (
            f"Campaigns that are joined disagree by how much {evidence.where(found)} "
            f"{'differs' if len(found) == 1 else 'differ'} from {quoted(evidence.scope.baseline or '')}: "
            f"{STATISTICS[worst.statistic]} is {worst.text()}, and what stands here is something in between."
        )
        yield Weakness("campaigns_disagree", SERIOUS, text, **evidence.about(found))
    if levels:
        worst, found = max(levels, key=lambda each: each.by), _series(levels)
        text = (
            f"Campaigns that are joined disagree about {evidence.where(found)}, more than runs within them do: "
            f"{STATISTICS[worst.statistic]} is {worst.text()}. Runs are taken for independent of their campaign, so "
            "the interval of such a figure is too narrow."
        )
        yield Weakness("campaigns_disagree", LIMITS, text, **evidence.about(found))


def outlying(evidence: Evidence) -> Iterator[Weakness]:
    """Runs that count although their mean is far from that of their siblings."""
    found = list(evidence.where_runs(lambda run: run.get("is_outlying")))
    if found:
        n = sum(len(runs) for _, runs in found)
        named = ""
        if n == 1:
            ((_, (run,)),) = found
            named = f" (run {run['run']})"
        text = (
            f"{counted(n, 'run')} of {evidence.where([each for each, _ in found])}{named} "
            f"{'is' if n == 1 else 'are'} far from the others of the same cell, and counted: figures there rest on "
            f"{'it' if n == 1 else 'them'} more than on any other."
        )
        about = evidence.about([each for each, _ in found]) | {"n": n, "n_of": len(evidence.runs), "counted": "runs"}
        yield Weakness("outlying_runs", LIMITS, text, **about)


# --- figures by campaign ---------------------------------------------------------------------------------------------


def _campaigns(series: Series) -> set[_Campaign]:
    return {(run["host"], run["timestamp"]) for run in series.runs}


def _levels(evidence: Evidence) -> Iterator[_Apart]:
    for series in evidence.series:
        for statistic in STATISTICS:
            groups = _by_campaign(evidence, series, statistic)
            if (p := p_alike(list(groups.values()))) is not None:
                told = {campaign: float(np.exp(values.mean())) for campaign, values in groups.items()}
                yield _Apart(series, None, statistic, p, told)


def _shifts(evidence: Evidence) -> Iterator[_Apart]:
    pairs = [pair for variant in evidence.scope.variants for pair in evidence.beside_baseline(variant)]
    for baseline, series in pairs:
        for statistic in STATISTICS:
            below, above = (_by_campaign(evidence, each, statistic) for each in (baseline, series))
            both = {campaign: (below[campaign], above[campaign]) for campaign in below if campaign in above}
            if (p := p_same_difference(list(both.values()))) is not None:
                told = {campaign: float(np.exp(two.mean() - one.mean())) for campaign, (one, two) in both.items()}
                yield _Apart(series, baseline, statistic, p, told)


def _by_campaign(evidence: Evidence, series: Series, statistic: str) -> _Groups:
    found: dict[_Campaign, list[float]] = {}
    for run, value_ns in evidence.of_runs(series, statistic):
        if value_ns:
            found.setdefault((run["host"], run["timestamp"]), []).append(value_ns)
    return {campaign: np.log(values) for campaign, values in found.items()}


def _sure(evidence: Evidence, found: Sequence[_Apart]) -> list[_Apart]:
    adjusted = families.hommel([each.p for each in found])
    alpha, least = 1 - evidence.scope.confidence, 1 + evidence.scope.margin
    return [each for each, p in zip(found, adjusted, strict=True) if p <= alpha and each.by > least]


def _among(series: Series, others: Sequence[Series]) -> bool:
    return any(series is other for other in others)


def _series(found: Sequence[_Apart]) -> list[Series]:
    return list({id(each.series): each.series for each in found}.values())
