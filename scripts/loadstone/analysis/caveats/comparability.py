"""Caveats on comparing runs: what differed other than the variant, campaigns that disagree, and outlying runs.

Campaigns are compared by the logarithms of their runs' latencies and by their error fractions; differences from the
baseline by pairs of runs if the verdict is paired too. P values are adjusted over all figures of the scope by Hommel's
method. Differences within the margin of equivalence, or within a step of the clock, are ignored.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np

from loadstone.analysis import Row
from loadstone.analysis.caveats.base import (
    LIMITS,
    NOTE,
    SERIOUS,
    Evidence,
    Occurrence,
    caveat,
    common,
)
from loadstone.analysis.caveats.figures import FAILURES_SHARE
from loadstone.analysis.reasons import quoted
from loadstone.analysis.scope import SENT_ALIKE, Series, paired, step_ns, unlike
from loadstone.archive import extension
from loadstone.percentiles import ERRORS, LATENCIES, label
from loadstone.stats.bootstrap import Floats
from loadstone.stats.contrasts import hommel
from loadstone.stats.shares import Side, p_equal_differences, p_equal_means, p_equal_share_differences, p_equal_shares
from loadstone.tables import layout
from loadstone.text import counted, listed, ms, three

_Campaign = tuple[str, str]  # host and timestamp
_Pair = tuple[Series, Series]  # baseline and variant
_Values = dict[tuple[int, str], float]  # by a run's number and folder

# The software of clusters and their other workloads change from one week to the next.
FAR_APART_DAYS = 7
_UNDATED = 1  # the year of a campaign whose name is no timestamp

_ONE_CAMPAIGN = "measure all variants again in one campaign"


# --- what differed other than the variant ----------------------------------------------------------------------------


@caveat(
    "Different hosts",
    "serious where the runs of a variant and its baseline are from several hosts: the difference may come from the "
    "machine; limits where hosts differ only between loads or ways of measuring",
    "measure all variants on one host",
)
def hosts(evidence: Evidence) -> Iterator[Occurrence]:
    runs = Counter(run["host"] for run in evidence.runs)
    if len(runs) > 1:
        text = f"The runs are from {len(runs)} hosts ({_run_counts(runs)}): the difference may come from the machine."
        found = _mixed(evidence, lambda runs: len({run["host"] for run in runs}) > 1)
        yield _different(evidence, text, found, len(runs), "hosts")


@caveat(
    "Different numbers of replicas",
    "serious where a variant and its baseline had different numbers of replicas; limits where the numbers differ only "
    "between loads or ways of measuring",
    "give all variants the same number of replicas",
)
def replicas(evidence: Evidence) -> Iterator[Occurrence]:
    runs = Counter(_known(evidence.runs, "replicas"))
    if len(runs) > 1:
        parts = [f"{number} in {counted(count, 'run')}" for number, count in sorted(runs.items())]
        found = _mixed(evidence, lambda runs: len(set(_known(runs, "replicas"))) > 1)
        text = f"The number of replicas differs: {listed(parts)}{_concerning(evidence, found)}."
        yield _different(evidence, text, found, len(runs), "numbers")


@caveat(
    "Sent in different ways",
    "serious where the requests of a variant and its baseline were sent by different programs, or with different "
    "numbers of load generators or connections, which changes the latency of a fast target; limits where they "
    "differ only between loads or ways of measuring",
    "measure all variants with the same number of load generators and connections, by one version of Loadstone",
)
def sent_by(evidence: Evidence) -> Iterator[Occurrence]:
    if runs := Counter(run["sent_by"] for run in _sent_differently(evidence.runs)):
        found = _mixed(evidence, lambda runs: bool(_sent_differently(runs)))
        text = f"Requests were sent in {len(runs)} ways: by {_run_counts(runs)}{_concerning(evidence, found)}."
        yield _different(evidence, text, found, len(runs), "ways")


def _sent_differently(runs: Sequence[Row]) -> list[Row]:
    """Runs of tools that sent requests in more than one way."""
    ways = {(run["generator"], run["sent_alike"]) for run in runs}
    counts = Counter(generator for generator, _ in ways)
    return [run for run in runs if counts[run["generator"]] > 1]


@caveat(
    "Different numbers of load generators",
    "limits where the requests of a variant and its baseline were sent by different numbers of load generators of one "
    "process, over as many connections: these were shown to be equivalent within 5 %, for one target",
    "measure all variants with the same number of load generators",
)
def numbers_of_generators(evidence: Evidence) -> Iterator[Occurrence]:
    if found := _mixed(evidence, lambda runs: bool(_sent_by_other_numbers(runs))):
        runs = Counter(run["sent_by"] for run in _sent_by_other_numbers(evidence.runs))
        text = f"Requests were sent by {_run_counts(runs)}{_concerning(evidence, found)}: {SENT_ALIKE}."
        yield Occurrence(LIMITS, text, len(runs), len(runs), "numbers", cells=evidence.cells(found))


def _sent_by_other_numbers(runs: Sequence[Row]) -> list[Row]:
    """Runs of which others, sent in an equivalent way, differ in the number of load generators."""
    counts = Counter(alike for alike, _ in {(run["sent_alike"], run["sent_by"]) for run in runs})
    return [run for run in runs if counts[run["sent_alike"]] > 1]


def _different(evidence: Evidence, text: str, found: Sequence[Series], n: int, counted: str) -> Occurrence:
    """Serious for cells that differ from their baseline; without any, a reservation about the whole scope."""
    cells = evidence.cells(found) if found else None
    return Occurrence(SERIOUS if found else LIMITS, text, n, n, counted, cells=cells)


def _concerning(evidence: Evidence, found: Sequence[Series]) -> str:
    return f"; this concerns {evidence.where(found)}" if found and len(found) < len(evidence.series) else ""


def _known(runs: Iterable[Row], column: str) -> list[Any]:
    return [run[column] for run in runs if run[column] is not None]


def _mixed(evidence: Evidence, test: Callable[[Sequence[Row]], bool]) -> list[Series]:
    """Series whose runs pass a test together with those of their baseline, or of all variants if that has no runs."""
    found, baseline = [], evidence.scope.baseline
    variants_at = {(place.rate, place.way): place.series for place in evidence.scope.places}
    for series in evidence.series:
        variants = variants_at[series.rate, series.way]
        others = [variants[baseline]] if baseline in variants else list(variants.values())
        if test([run for each in (series, *others) for run in each.runs]):
            found.append(series)
    return found


def _run_counts(runs: Mapping[str, int]) -> str:
    return listed(f"{name} with {counted(count, 'run')}" for name, count in sorted(runs.items()))


@caveat(
    "Different versions of tools",
    "limits where the load generator or another recorded tool had several versions",
    "measure all runs with the same versions",
)
def tool_versions(evidence: Evidence) -> Iterator[Occurrence]:
    """One per tool."""
    found = defaultdict(set)
    for each in evidence.metadata:
        for tool, version in ((each.generator, each.generator_version), *each.tools.items()):
            if version:
                found[tool].add(version)
    for tool, versions in sorted(found.items()):
        if len(versions) > 1:
            text = f"{tool} had {len(versions)} versions: {listed(sorted(versions))}."
            yield Occurrence(LIMITS, text, len(versions), len(versions), "versions")


@caveat(
    "Measured in several ways",
    "note where there are several load models or load generators; no figure combines two of them",
    "measure all variants in one way",
)
def ways(evidence: Evidence) -> Iterator[Occurrence]:
    for column, what in (("load_model", "load models"), ("generator", "load generators")):
        runs = Counter(str(run[column]) for run in evidence.runs)
        if len(runs) > 1:
            rest = "no figure combines two of them"
            if len(evidence.scope.ways) == 1:
                rest = "their latencies have the same meaning"
            text = f"The runs are of {len(runs)} {what} ({_run_counts(runs)}); {rest}."
            yield Occurrence(NOTE, text, len(runs), len(runs), what)


@caveat(
    "Measured at different times",
    f"limits where campaigns more than {FAR_APART_DAYS} days apart are combined",
    _ONE_CAMPAIGN,
)
def far_apart(evidence: Evidence) -> Iterator[Occurrence]:
    measured = {_campaign(run) for run in evidence.runs}
    dated = sorted(
        (campaign.instant, layout.text(campaign.timestamp), layout.text(campaign.host))
        for campaign in evidence.scope.campaigns
        if (layout.text(campaign.host), layout.text(campaign.timestamp)) in measured
        and campaign.instant.year > _UNDATED
    )
    if not dated:
        return
    (first, first_name, _), (last, last_name, _) = dated[0], dated[-1]
    limit = timedelta(days=FAR_APART_DAYS)
    if (span := last - first) > limit:
        text = (
            f"The runs are of {counted(len(dated), 'campaign')} from {first_name} to {last_name}, {span.days} days "
            "apart: the difference may come from other changes in that time."
        )
        at = {(host, timestamp): instant for instant, timestamp, host in dated}
        cells = evidence.cells(_mixed(evidence, lambda runs: _span(runs, at) > limit))
        yield Occurrence(LIMITS, text, len(dated), len(measured), "campaigns", cells=cells)


def _span(runs: Sequence[Row], at: Mapping[_Campaign, datetime]) -> timedelta:
    known = [at[campaign] for run in runs if (campaign := _campaign(run)) in at]
    return max(known) - min(known) if known else timedelta()


@caveat(
    "Measured in other campaigns",
    "limits where the runs of a variant and of the baseline are from different campaigns",
    _ONE_CAMPAIGN,
)
def other_campaigns(evidence: Evidence) -> Iterator[Occurrence]:
    """One per variant."""
    for variant in evidence.scope.variants:
        others = [other for baseline, other in evidence.pairs(variant) if _campaigns(baseline) != _campaigns(other)]
        if others:
            text = (
                f"{quoted(variant)} and {quoted(evidence.scope.baseline or '')} are from different campaigns "
                f"{evidence.at(each.rate for each in others)}: the difference may come from what changed between them."
            )
            yield Occurrence(LIMITS, text, **evidence.in_cells(others))


# --- campaigns that disagree -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Disagreement:
    """A figure that differs between campaigns, of one variant or (with a `baseline`) relative to another.

    `by_campaign` is its value in each: ns, a ratio, a share or a difference of shares. `clock_error` is the largest
    difference that the steps of the clock explain, on the scale of logarithms.
    """

    series: Series
    baseline: Series | None
    statistic: str
    p: float
    by_campaign: Mapping[_Campaign, float]
    clock_error: float = 0.0

    @property
    def size(self) -> float:
        """The ratio of the largest value to the smallest, or the difference of shares."""
        least, most = min(self.by_campaign.values()), max(self.by_campaign.values())
        return most - least if self.statistic == ERRORS else most / least

    def is_material(self, margin: float) -> bool:
        """Whether it is above both the margin and the clock's error."""
        if self.statistic == ERRORS:
            return self.size > FAILURES_SHARE
        return bool(np.log(self.size) > max(np.log1p(margin), self.clock_error))

    def text(self) -> str:
        """The smallest and the largest value, with their campaigns."""
        ends = [one(self.by_campaign, key=self.by_campaign.__getitem__) for one in (min, max)]
        several_hosts = len({host for host, _ in self.by_campaign}) > 1
        parts = [
            f"{self._value_text(self.by_campaign[end])} in {f'{end[0]} ' if several_hosts else ''}{end[1]}"
            for end in ends
        ]
        name = label(self.statistic).lower()
        if self.statistic == ERRORS:
            name = "the difference in the share of failures" if self.baseline else "the share of failures"
        return f"{name} is {' and '.join(parts)}"

    def _value_text(self, value: float) -> str:
        if self.statistic == ERRORS:
            return f"{100 * value:+.3g} points" if self.baseline else f"{100 * value:.3g} %"
        return f"{three(value)} times" if self.baseline else ms(value)


@caveat(
    "Campaigns that disagree",
    "serious where the difference from the baseline is not the same in all combined campaigns; limits where a figure "
    "of a variant is not: beyond the variation of runs within them (Student's t of every two campaigns, corrected for "
    "all of these and all figures), and by more than the margin of equivalence, or "
    f"{FAILURES_SHARE:.0%} of requests that failed",
    "look at each campaign by itself; find what differed between them before combining them",
)
def campaigns_disagree(evidence: Evidence) -> Iterator[Occurrence]:
    """Differences from the baseline, then figures of a variant; latencies and failures separately."""
    shifts = _significant(evidence, [*_latency_shifts(evidence), *_failure_shifts(evidence)])
    shifted = {id(each.series) for each in shifts}
    levels = _significant(evidence, [*_latency_levels(evidence), *_failure_levels(evidence)])
    levels = [each for each in levels if id(each.series) not in shifted]
    for weight, is_failures in product((SERIOUS, LIMITS), (False, True)):
        disagreements = shifts if weight == SERIOUS else levels
        found = [each for each in disagreements if (each.statistic == ERRORS) == is_failures]
        if not found:
            continue
        series, worst = _unique(each.series for each in found), max(found, key=lambda each: each.size).text()
        if weight == SERIOUS:
            text = (
                f"Combined campaigns disagree on the difference of {evidence.where(series)} from "
                f"{quoted(evidence.scope.baseline or '')}: {worst}, and the figure shown lies in between."
            )
        else:
            text = (
                f"Combined campaigns disagree on {evidence.where(series)}, by more than the variation of runs within "
                f"them: {worst}. Runs are assumed independent of their campaign, so the intervals of such figures are "
                "too narrow."
            )
        yield Occurrence(weight, text, statistic=common(each.statistic for each in found), **evidence.in_cells(series))


def _significant(evidence: Evidence, found: Sequence[_Disagreement]) -> list[_Disagreement]:
    adjusted = hommel([each.p for each in found])
    alpha, margin = 1 - evidence.scope.confidence, evidence.scope.margin
    return [each for each, p in zip(found, adjusted, strict=True) if p <= alpha and each.is_material(margin)]


def _latency_levels(evidence: Evidence) -> Iterator[_Disagreement]:
    for series in evidence.series:
        for statistic in LATENCIES:
            groups = _log_latencies(evidence, series, statistic)
            logs = {campaign: _array(values.values()) for campaign, values in groups.items()}
            if (p := p_equal_means(list(logs.values()))) is not None:
                means = {campaign: float(np.exp(values.mean())) for campaign, values in logs.items()}
                yield _Disagreement(series, None, statistic, p, means, series.resolution_ns / min(means.values()))


def _latency_shifts(evidence: Evidence) -> Iterator[_Disagreement]:
    for pair in _pairs(evidence):
        by_pairs = paired(pair)
        for statistic in LATENCIES:
            one, other = (_log_latencies(evidence, each, statistic) for each in pair)
            groups = {campaign: (one[campaign], other[campaign]) for campaign in one if campaign in other}
            sides = {campaign: _sides(*both, by_pairs=by_pairs) for campaign, both in groups.items()}
            sides = {campaign: both for campaign, both in sides.items() if both[0].size}
            both = list(sides.values())
            p = p_equal_means([b - a for a, b in both]) if by_pairs else p_equal_differences(both)
            if p is not None:
                ratios = {campaign: float(np.exp(b.mean() - a.mean())) for campaign, (a, b) in sides.items()}
                least_ns = [min(float(np.exp(values.mean())) for values in side) for side in zip(*both, strict=True)]
                clock_error = step_ns(pair) * sum(1 / least for least in least_ns)
                yield _Disagreement(pair[1], pair[0], statistic, p, ratios, clock_error)


def _failure_levels(evidence: Evidence) -> Iterator[_Disagreement]:
    for series in evidence.series:
        sides = _failure_sides(evidence, series)
        if (p := p_equal_shares(list(sides.values()))) is not None:
            shares = {campaign: side.pooled.value for campaign, side in sides.items()}
            yield _Disagreement(series, None, ERRORS, p, shares)


def _failure_shifts(evidence: Evidence) -> Iterator[_Disagreement]:
    for pair in _pairs(evidence):
        one, other = (_failure_sides(evidence, each) for each in pair)
        both = {campaign: (one[campaign], other[campaign]) for campaign in one if campaign in other}
        p = p_equal_share_differences(list(both.values()), paired=paired(pair))
        if p is not None:
            shifts = {campaign: b.pooled.value - a.pooled.value for campaign, (a, b) in both.items()}
            yield _Disagreement(pair[1], pair[0], ERRORS, p, shifts)


def _pairs(evidence: Evidence) -> Iterator[_Pair]:
    """The pairs that have verdicts."""
    for variant in evidence.scope.variants:
        yield from (pair for pair in evidence.pairs(variant) if not unlike(pair))


def _log_latencies(evidence: Evidence, series: Series, statistic: str) -> dict[_Campaign, _Values]:
    """Logarithms of a figure of single runs, where it is known, by campaign."""
    found: dict[_Campaign, _Values] = defaultdict(dict)
    for run, value_ns in evidence.run_values(series, statistic):
        if value_ns is not None and value_ns > 0:
            found[_campaign(run)][run["run"], run["variant_dir"]] = float(np.log(value_ns))
    return found


def _sides(one: _Values, other: _Values, *, by_pairs: bool) -> tuple[Floats, Floats]:
    """The values of two variants; with `by_pairs` those of runs with a partner of the same number."""
    if not by_pairs:
        return _array(one.values()), _array(other.values())
    first, second = ({run: value for (run, _), value in values.items()} for values in (one, other))
    shared = sorted(first.keys() & second.keys())
    return _array(first[run] for run in shared), _array(second[run] for run in shared)


def _array(values: Iterable[float]) -> Floats:
    return np.array(list(values), np.float64)


def _failure_sides(evidence: Evidence, series: Series) -> dict[_Campaign, Side]:
    found = defaultdict(list)
    for run, share, requests in evidence.failure_shares(series):
        found[_campaign(run)].append((share, requests))
    return {campaign: Side(*np.array(pairs, np.float64).T) for campaign, pairs in found.items()}


@caveat(
    "Measured in different parts",
    "limits where the runs of a variant and of its baseline are of different parts of an extended campaign, between "
    "which anything may have changed; serious where target, machine or tools are known to have changed",
    _ONE_CAMPAIGN,
)
def different_parts(evidence: Evidence) -> Iterator[Occurrence]:
    def parts(series: Series) -> set[int]:
        return {run["part"] for run in series.runs}

    pairs = [pair for variant in evidence.scope.variants for pair in evidence.pairs(variant)]
    if found := _unique(other for baseline, other in pairs if parts(baseline) != parts(other)):
        text = (
            f"The campaign was extended, and {evidence.where(found)} and the baseline were not measured in the same "
            "parts: what changed in between can't be distinguished from a difference between variants."
        )
        yield Occurrence(LIMITS, text, **evidence.in_cells(found))
    changes = [text for each in evidence.scope.campaigns for part in extension.read(each) for text in part.differences]
    if changes and (later := [series for series in evidence.series if max(parts(series)) > 1]):
        text = f"The campaign was extended although something had changed: {listed(dict.fromkeys(changes))}."
        yield Occurrence(SERIOUS, text, **evidence.in_cells(later))


# --- runs far from others --------------------------------------------------------------------------------------------


@caveat(
    "Outlying runs",
    "limits where a valid run is suggested as an outlier; of two runs, where they are that far apart",
    "inspect the run: tag it if something went wrong, otherwise measure more runs",
)
def outlying_runs(evidence: Evidence) -> Iterator[Occurrence]:
    found = [
        (series, run, _n_others(series, run))
        for series, runs in evidence.with_runs(lambda run: run.get("is_outlying"))
        for run in runs
    ]
    if of_two := _unique(series for series, _, others in found if others == 1):
        text = (
            f"The two runs of {evidence.where(of_two)} are far apart, beyond the variation of requests within each: "
            "which of them is the outlier is unknown."
        )
        yield Occurrence(LIMITS, text, remedy="measure more runs there", **evidence.in_cells(of_two))
    if far := [(series, run) for series, run, others in found if others > 1]:
        series, n = _unique(each for each, _ in far), len(far)
        if n == 1:
            text = f"1 run of {evidence.where(series)} (run {far[0][1]['run']}) is far from the others of its cell"
        else:
            text = f"{n:,} runs are far from the others of their cells ({evidence.where(series)})"
        text += f" and not excluded: figures there depend on {'it' if n == 1 else 'them'} more than on any other."
        yield Occurrence(
            LIMITS, text, **evidence.in_cells(series) | {"n": n, "n_of": len(evidence.runs), "counted": "runs"}
        )


def _n_others(series: Series, run: Mapping[str, Any]) -> int:
    """The number of other runs of its campaign, with which it was compared."""
    return Counter(map(_campaign, series.runs))[_campaign(run)] - 1


def _campaign(run: Mapping[str, Any]) -> _Campaign:
    return run["host"], run["timestamp"]


def _campaigns(series: Series) -> set[_Campaign]:
    return set(map(_campaign, series.runs))


def _unique(found: Iterable[Series]) -> list[Series]:
    return list({id(each): each for each in found}.values())
