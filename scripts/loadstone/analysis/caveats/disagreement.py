"""Weaknesses of runs that do not agree: campaigns that are joined, and single runs far from their siblings.

Campaigns are compared by the logarithms of their runs' latencies and by the shares of their requests that failed; a
difference from the baseline by pairs of runs where its verdict goes by these. All are corrected for all figures of the
scope by Hommel's method; a difference within the margin of equivalence, or of a step of the clock, is none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadstone.analysis import pairs as contrasted
from loadstone.analysis.caveats.definitions import FAILURES_SHARE, LIMITS, SERIOUS, Weakness
from loadstone.analysis.caveats.evidence import STATISTICS, Evidence, only
from loadstone.analysis.scope import Series, quoted
from loadstone.digits import ms, three
from loadstone.stats import contrasts
from loadstone.stats.bootstrap import ERRORS, Floats
from loadstone.stats.shares import Side, p_equal_differences, p_equal_means, p_equal_share_differences, p_equal_shares

_Campaign = tuple[str, str]  # host and timestamp
_Pair = tuple[Series, Series]  # baseline and variant
_Run = tuple[int, str]  # number and folder
_Values = Mapping[_Run, float]
_Both = tuple[_Values, _Values]  # of a baseline and a variant


@dataclass(frozen=True)
class _Apart:
    """A figure that campaigns tell unlike, of one variant or (`baseline`) beside another.

    `told` is what each campaign tells: ns, a ratio, a share or a difference of shares. `unsure` is how far apart they
    may be by the steps of the clock alone, on the scale of logarithms.
    """

    series: Series
    baseline: Series | None
    statistic: str
    p: float
    told: Mapping[_Campaign, float]
    unsure: float = 0.0

    @property
    def by(self) -> float:
        """In all by so many times, or by such a share."""
        least, most = min(self.told.values()), max(self.told.values())
        return most - least if self.statistic == ERRORS else most / least

    def is_material(self, margin: float) -> bool:
        """Whether it matters, and no clock makes it."""
        if self.statistic == ERRORS:
            return self.by > FAILURES_SHARE
        return bool(np.log(self.by) > max(np.log1p(margin), self.unsure))

    def text(self) -> str:
        """Where it is least and where most."""
        ends = [one(self.told, key=self.told.__getitem__) for one in (min, max)]
        hosts = len({host for host, _ in self.told}) > 1
        places = [f"{self._shown(self.told[end])} in {f'{end[0]} ' if hosts else ''}{end[1]}" for end in ends]
        return f"{self._named} is {' and '.join(places)}"

    @property
    def _named(self) -> str:
        if self.statistic != ERRORS:
            return STATISTICS[self.statistic]
        return "the difference of their shares of failures" if self.baseline else "the share of failures"

    def _shown(self, value: float) -> str:
        if self.statistic == ERRORS:
            return f"{100 * value:+.3g} points" if self.baseline else f"{100 * value:.3g} %"
        return f"{three(value)} times" if self.baseline else ms(value)


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
    """Figures of a variant, and differences of two, that are not the same in all campaigns; failures by themselves."""
    shifts = _sure(evidence, [*_shifts(evidence), *_shifts_of_failures(evidence)])
    told = [each.series for each in shifts]
    levels = _sure(evidence, [*_levels(evidence), *_levels_of_failures(evidence)])
    levels = [each for each in levels if not _among(each.series, told)]
    for found in _by_kind(shifts):
        series, worst = _unique(each.series for each in found), max(found, key=lambda each: each.by)
        text = (
            f"Campaigns that are joined disagree by how much {evidence.where(series)} "
            f"{'differs' if len(series) == 1 else 'differ'} from {quoted(evidence.scope.baseline or '')}: "
            f"{worst.text()}, and what stands here is something in between."
        )
        yield Weakness(
            "campaigns_disagree",
            SERIOUS,
            text,
            statistic=only(each.statistic for each in found),
            **evidence.about(series),
        )
    for found in _by_kind(levels):
        series, worst = _unique(each.series for each in found), max(found, key=lambda each: each.by)
        text = (
            f"Campaigns that are joined disagree about {evidence.where(series)}, more than runs within them do: "
            f"{worst.text()}. Runs are taken for independent of their campaign, so the interval of such a figure is "
            "too narrow."
        )
        yield Weakness(
            "campaigns_disagree",
            LIMITS,
            text,
            statistic=only(each.statistic for each in found),
            **evidence.about(series),
        )


def outlying(evidence: Evidence) -> Iterator[Weakness]:
    """Runs that count although their mean is far from that of their siblings."""
    found = list(evidence.where_runs(lambda run: run.get("is_outlying")))
    twos = [(each, run) for each, runs in found for run in runs if _siblings(each, run) == 1]
    if twos:
        series = _unique(each for each, _ in twos)
        text = (
            f"The two runs of {evidence.where(series)} are far from each other, beyond what requests within each vary: "
            "which of them is odd nobody knows, and figures there are of neither."
        )
        yield Weakness("outlying_runs", LIMITS, text, remedy="measure more runs there", **evidence.about(series))
    far = [(each, run) for each, runs in found for run in runs if _siblings(each, run) > 1]
    if far:
        series, n = _unique(each for each, _ in far), len(far)
        text = f"{n:,} runs are far from the others of the same cell, and counted ({evidence.where(series)})"
        if n == 1:
            text = f"1 run of {evidence.where(series)} (run {far[0][1]['run']}) is far from the others of the same cell"
            text += ", and counted"
        text += f": figures there rest on {'it' if n == 1 else 'them'} more than on any other."
        about = evidence.about(series) | {"n": n, "n_of": len(evidence.runs), "counted": "runs"}
        yield Weakness("outlying_runs", LIMITS, text, **about)


def _siblings(series: Series, run: Mapping[str, Any]) -> int:
    """Other runs that it was judged by: those of its campaign."""
    return Counter(map(_campaign, series.runs))[_campaign(run)] - 1


# --- figures by campaign ---------------------------------------------------------------------------------------------


def _campaign(run: Mapping[str, Any]) -> _Campaign:
    return run["host"], run["timestamp"]


def _campaigns(series: Series) -> set[_Campaign]:
    return set(map(_campaign, series.runs))


def _levels(evidence: Evidence) -> Iterator[_Apart]:
    for series in evidence.series:
        for statistic in STATISTICS:
            groups = _by_campaign(evidence, series, statistic)
            if (p := p_equal_means([_array(group) for group in groups.values()])) is not None:
                told = {campaign: float(np.exp(_array(group).mean())) for campaign, group in groups.items()}
                unsure = series.resolution_ns / min(told.values())
                yield _Apart(series, None, statistic, p, told, unsure)


def _shifts(evidence: Evidence) -> Iterator[_Apart]:
    for pair in _pairs(evidence):
        paired = contrasted.paired(pair)
        for statistic in STATISTICS:
            groups = _of_both(*(_by_campaign(evidence, each, statistic) for each in pair))
            if paired:
                groups = {campaign: _in_pairs(both) for campaign, both in groups.items()}
            sides = {
                campaign: (_array(one), _array(other)) for campaign, (one, other) in groups.items() if one and other
            }
            both = list(sides.values())
            p = p_equal_means([other - one for one, other in both]) if paired else p_equal_differences(both)
            if p is not None:
                told = {campaign: float(np.exp(other.mean() - one.mean())) for campaign, (one, other) in sides.items()}
                least_ns = [min(float(np.exp(values.mean())) for values in side) for side in zip(*both, strict=True)]
                unsure = contrasted.step_ns(pair) * sum(1 / least for least in least_ns)
                yield _Apart(pair[1], pair[0], statistic, p, told, unsure)


def _levels_of_failures(evidence: Evidence) -> Iterator[_Apart]:
    for series in evidence.series:
        groups = _sides(evidence, series)
        if (p := p_equal_shares(list(groups.values()))) is not None:
            yield _Apart(series, None, ERRORS, p, {campaign: side.pooled.value for campaign, side in groups.items()})


def _shifts_of_failures(evidence: Evidence) -> Iterator[_Apart]:
    for pair in _pairs(evidence):
        below, above = (_sides(evidence, each) for each in pair)
        both = {campaign: (below[campaign], above[campaign]) for campaign in below if campaign in above}
        p = p_equal_share_differences(list(both.values()), paired=contrasted.paired(pair))
        if p is not None:
            told = {campaign: other.pooled.value - one.pooled.value for campaign, (one, other) in both.items()}
            yield _Apart(pair[1], pair[0], ERRORS, p, told)


def _pairs(evidence: Evidence) -> Iterator[_Pair]:
    """What verdicts are about."""
    for variant in evidence.scope.variants:
        for pair in evidence.beside_baseline(variant):
            if pair[0].evidence == pair[1].evidence:
                yield pair


def _by_campaign(evidence: Evidence, series: Series, statistic: str) -> Mapping[_Campaign, _Values]:
    """Logarithms of what single runs tell, as far as they do."""
    found: dict[_Campaign, dict[_Run, float]] = {}
    for run, value_ns in evidence.of_runs(series, statistic):
        if value_ns:
            found.setdefault(_campaign(run), {})[run["run"], run["variant_dir"]] = float(np.log(value_ns))
    return found


def _of_both(below: Mapping[_Campaign, _Values], above: Mapping[_Campaign, _Values]) -> dict[_Campaign, _Both]:
    return {campaign: (below[campaign], above[campaign]) for campaign in below if campaign in above}


def _in_pairs(both: _Both) -> _Both:
    """Those of both sides that have a partner of the same number."""
    one, other = ({(run, ""): value for (run, _), value in values.items()} for values in both)
    shared = sorted(one.keys() & other.keys())
    return {run: one[run] for run in shared}, {run: other[run] for run in shared}


def _sides(evidence: Evidence, series: Series) -> dict[_Campaign, Side]:
    found: dict[_Campaign, list[tuple[float, float]]] = {}
    for run, share, requests in evidence.failed(series):
        found.setdefault(_campaign(run), []).append((share, requests))
    return {campaign: Side(*np.array(told, np.float64).T) for campaign, told in found.items()}


def _array(values: _Values) -> Floats:
    return np.array(list(values.values()), np.float64)


def _sure(evidence: Evidence, found: Sequence[_Apart]) -> list[_Apart]:
    adjusted = contrasts.hommel([each.p for each in found])
    alpha, margin = 1 - evidence.scope.confidence, evidence.scope.margin
    return [each for each, p in zip(found, adjusted, strict=True) if p <= alpha and each.is_material(margin)]


def _by_kind(found: Sequence[_Apart]) -> Iterator[list[_Apart]]:
    """Latencies, and failures, as far as there are any."""
    for of_failures in (False, True):
        if own := [each for each in found if (each.statistic == ERRORS) == of_failures]:
            yield own


def _among(series: Series, others: Iterable[Series]) -> bool:
    return any(series is other for other in others)


def _unique(found: Iterable[Series]) -> list[Series]:
    return list({id(each): each for each in found}.values())
