"""Compares the newest complete campaign of each app and host with earlier ones: did it become slower?

Each figure (a statistic of a variant at a rate) is compared with the same figure of earlier campaigns that measured it
in the same way, by the tests of `loadstone.stats.history`; error fractions by those of `loadstone.stats.shares`. The
probability that any figure is called worse by chance is at most 1 - confidence: p values are adjusted by Holm's method.
No worse needs no adjustment, since each figure has to show it (Berger 1982, "Multiparameter hypothesis testing",
Technometrics 24(4)). The best of several references is not the one with the lowest value, which would be partly chance:
a figure is worse than the best of them if it is worse than any, with one test for each.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadstone import sql
from loadstone.analysis import by_key, history
from loadstone.analysis.caveats.figures import DECIDING_SHARE
from loadstone.analysis.gate_outcome import (
    INCONCLUSIVE,
    MISSING_REFERENCE,
    MISSING_RUNS,
    NO_WORSE,
    WORSE,
    CampaignKey,
    Difference,
    Finding,
    GateOutcome,
    Nearest,
    Options,
    failed_text,
)
from loadstone.analysis.history import Figure, add_open_percentiles, change, failed, figure, lacks, unsure
from loadstone.analysis.scope import SENT_ALIKE
from loadstone.archive import Campaign, parse_timestamp
from loadstone.errors import LoadstoneError
from loadstone.percentiles import ERRORS
from loadstone.stats import history as levels
from loadstone.stats import shares
from loadstone.stats.contrasts import holm
from loadstone.stats.history import difference
from loadstone.tables import database, layout
from loadstone.text import listed, load_unit, percent, rate_text

_NEAREST = 2  # earlier campaigns that are named where none is comparable

_Cell = dict[str, Any]
_Place = tuple[str, str, str, str, float, bool]  # app, host, timestamp, variant, rate, whether it has runs
_Reference = tuple[_Cell, Figure]


def judge(campaigns: Sequence[Campaign], candidates: Sequence[Campaign], tables: Path, options: Options) -> GateOutcome:
    """Judge one of the `candidates` of each app and host by the tables of all `campaigns`.

    Raises LoadstoneError when the configuration names a campaign that is not there.
    """
    judged = _selected(candidates, campaigns, options)
    with database.open_memory() as connection:
        cells = history.measured(connection, tables, campaigns)
        add_open_percentiles(connection, tables, campaigns, cells)
        database.add_view(connection, tables, "planned", campaigns)
        places: list[_Place] = connection.sql(sql.load("planned_cells")).fetchall()
    findings = judge_cells(cells, places, judged, options)
    findings += _no_longer_measured(places, judged, options)
    without_runs = judged - {_campaign(row) for row in cells} - {place[:3] for place in places}
    findings += [
        _missing_runs((*key, "any variant", 0.0), "all", "the campaign has no runs") for key in sorted(without_runs)
    ]
    findings = _with_units(findings, cells)
    findings.sort(key=lambda each: (each.app, each.host, each.rate, each.variant, each.statistic))
    references = {(each.app, each.host, each.reference) for each in findings if each.reference}
    warnings = [*_failure_warnings(cells, judged), *_lag_warnings(cells, judged | references)]
    warnings += _number_warnings(cells, findings)
    return GateOutcome(findings, options, sorted(judged), _newer(judged, campaigns, options), warnings)


def judge_cells(
    cells: Sequence[_Cell], places: Sequence[_Place], judged: Collection[CampaignKey], options: Options
) -> list[Finding]:
    """Findings on all figures of the `judged` campaigns.

    `cells` are those of `history.measured`; `places` name the variants and rates that are planned or measured.
    """
    compared = [
        _compare(group[:position], cell, statistic, options, cells)
        for group in history.series(cells)
        for position, cell in enumerate(group)
        if _campaign(cell) in judged
        for statistic in options.statistics
    ]
    findings = [each for each in compared if isinstance(each, Finding)]
    measured = {(*_campaign(cell), cell["variant"], cell["rate"]) for cell in cells}
    findings += [
        _missing_runs(place, statistic, "all of its runs are excluded" if has_runs else "planned, but not measured")
        for *place, has_runs in places
        if tuple(place[:3]) in judged and tuple(place) not in measured
        for statistic in options.statistics
    ]
    return findings + _verdicts([each for each in compared if isinstance(each, _Tested)], options)


def _missing_runs(place: Sequence[Any], statistic: str, why: str) -> Finding:
    app, host, timestamp, variant, rate = place
    return Finding(app, host, timestamp, variant, rate, statistic, INCONCLUSIVE, why, MISSING_RUNS)


# --- one figure ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tested:
    """A figure with its differences from the references, and the allowed change on the scale of comparison."""

    cell: _Cell
    later: Figure
    references: Sequence[_Reference]
    differences: Sequence[levels.Difference | shares.ShareDifference]
    allowed: float
    days_unknown: bool = False

    @property
    def n_known(self) -> int:
        """How many references have a known value: nothing can be shown to be worse than a lower limit."""
        return sum(not before.at_least for _, before in self.references)

    @property
    def p_worse(self) -> float:
        """The p value of being worse than any of the references."""
        pairs = zip(self.differences, self.references, strict=True)
        known = [each.p_above(self.allowed) for each, (_, before) in pairs if not before.at_least]
        return min(1.0, len(known) * min(known)) if known else 1.0

    def finding(self, p_adjusted: float, level: float, options: Options) -> Finding:
        """`p_adjusted` is the p value of being worse, adjusted over all figures; `level` the limit without adjustment.

        The interval agrees with the tests: a figure is worse where all of it is above the allowed change, no worse
        where all of it is below.
        """
        alpha = 1 - options.confidence
        verdict = INCONCLUSIVE
        if p_adjusted < alpha:
            verdict = WORSE
        elif not self.later.at_least and all(each.p_below(self.allowed) < alpha for each in self.differences):
            verdict = NO_WORSE
        level_above = level / max(1, self.n_known)
        shown, (reference, before) = self._decisive(verdict, level_above, alpha)
        shift, low, high, allowed = (
            change(each, is_share=self.later.is_share)
            for each in (shown.shift, *shown.bounds(level_above, alpha), self.allowed)
        )
        why = "the interval includes the allowed change" if verdict == INCONCLUSIVE else None
        if self.later.at_least or before.at_least:
            why = f"{'it' if self.later.at_least else 'the reference'} falls among requests that timed out"
        return Finding(
            *_campaign(self.cell),
            self.cell["variant"],
            self.cell["rate"],
            self.later.statistic,
            verdict,
            why=why,
            reference=reference["timestamp"],
            value=self.later.value,
            reference_value=before.value,
            change=shift,
            low=None if before.at_least else low,
            high=None if self.later.at_least else high,
            allowed=allowed,
            p_worse=p_adjusted,
            at_least=self.later.at_least,
            reference_at_least=before.at_least,
            days_unknown=self.days_unknown,
        )

    def _decisive(
        self, verdict: str, above: float, below: float
    ) -> tuple[levels.Difference | shares.ShareDifference, _Reference]:
        """The reference to show: the one that the figure is worse than, or may be, or is closest to being."""

        def order(pair: tuple[levels.Difference | shares.ShareDifference, _Reference]) -> tuple[bool, bool, float]:
            found, (_, before) = pair
            low, high = found.bounds(above, below)
            if verdict == WORSE:
                return not before.at_least, True, low
            return high >= self.allowed, not before.at_least, high

        return max(zip(self.differences, self.references, strict=True), key=order)


def _verdicts(tested: Sequence[_Tested], options: Options) -> list[Finding]:
    """The findings on all figures. Holm's method gives one level, below which p values mean worse."""
    if not tested:
        return []
    alpha = 1 - options.confidence
    adjusted = holm([each.p_worse for each in tested])
    level = alpha / max(1, sum(p >= alpha for p in adjusted))
    return [each.finding(p, level, options) for each, p in zip(tested, adjusted, strict=True)]


def _compare(
    before: Sequence[_Cell], cell: _Cell, statistic: str, options: Options, cells: Sequence[_Cell]
) -> _Tested | Finding:
    """A figure with those of earlier campaigns of the same series (`before`), or why they can't be compared.

    `cells` are those of all series.
    """

    def inconclusive(why: str, missing: str | None = None, nearest: tuple[Nearest, ...] = ()) -> Finding:
        key = *_campaign(cell), cell["variant"], cell["rate"]
        return Finding(*key, statistic, INCONCLUSIVE, why, missing, nearest=nearest)

    is_named = parse_timestamp(options.reference) is not None
    eligible = [each for each in before if not is_named or each["timestamp"] == options.reference]
    if not eligible:
        unlike = "no earlier campaign measured it in the same way"
        if is_named:
            unlike = f"the reference, {options.reference}, is not an earlier campaign that measured it in the same way"
        candidates = [each for each in cells if not is_named or each["timestamp"] == options.reference]
        return inconclusive(unlike, MISSING_REFERENCE, _nearest(candidates, cell))
    later = figure(cell, statistic, options.confidence)
    if later is None:
        return inconclusive(lacks(cell, statistic))
    known, references = (
        [(each, found) for each in cells if (found := figure(each, statistic, options.confidence)) is not None]
        for cells in (before, eligible)
    )
    references = references[-options.n_references :]
    if not references:
        return inconclusive(_in_reference(eligible[-1], lacks(eligible[-1], statistic)))
    if why := _unusable(cell, later, references, options):
        return inconclusive(why)
    if later.at_least:
        references = [(each, found) for each, found in references if not found.at_least]
        if not references:
            return inconclusive("too many of its requests timed out, as in the reference")
    usable = [found for each, found in known if not found.at_least and (found.is_share or failed(each) is None)]
    between = _between_variance(usable, history.least_step(statistic, options.margin))
    differences = [_difference(found, later, between) for _, found in references]
    return _Tested(cell, later, references, differences, options.allowed(cell, statistic), not between[1])


def _nearest(cells: Sequence[_Cell], cell: _Cell) -> tuple[Nearest, ...]:
    """The earlier campaigns of the app that differ least from a cell, the latest first of those that differ equally.

    One that measured the variant at that rate on that host, in another way, is nearer than any other.
    """
    here, found = history.settings(cell), []
    for each in cells:
        if each["app"] == cell["app"] and _started(each["timestamp"]) < _started(cell["timestamp"]):
            settings = history.settings(each)
            differs = [Difference(name, settings[name], here[name]) for name in here if settings[name] != here[name]]
            is_other = [each[name] != cell[name] for name in ("variant", "rate", "host")]
            nearest = Nearest(each["host"], each["timestamp"], tuple(differs))
            found.append((is_other, len(differs), -_started(each["timestamp"])[0], each, nearest))
    found.sort(key=lambda each: each[:3])
    by_campaign: dict[CampaignKey, Nearest] = {}
    for *_, each, nearest in found:
        by_campaign.setdefault(_campaign(each), nearest)
    return tuple(by_campaign.values())[:_NEAREST]


def _unusable(cell: _Cell, later: Figure, references: Sequence[_Reference], options: Options) -> str | None:
    """Why a figure can't be compared with its references."""
    for each, found in ((cell, later), *references):
        why: str | None = None
        share = None if found.is_share else failed(each)
        if share is not None:
            why = f"{percent(share)} of its requests {failed_text(share)}"
        elif found.n_runs < options.runs:
            why = f"it has {found.n_runs} valid run{'' if found.n_runs == 1 else 's'}, {options.runs} are required"
        elif math.isnan(found.error):
            why = unsure(each, found.statistic)
        if why:
            return why if each is cell else _in_reference(each, why)
    return None


def _in_reference(cell: _Cell, why: str) -> str:
    return f"in the reference, {cell['timestamp']}, {why}"


def _difference(
    earlier: Figure, later: Figure, between: tuple[float, float]
) -> levels.Difference | shares.ShareDifference:
    if earlier.share and later.share:
        return shares.ShareDifference(earlier.share, later.share, between)
    before, after = ((each.scaled, each.error, each.freedom) for each in (earlier, later))
    return difference(before, after, between)


def _between_variance(earlier: Sequence[Figure], least: float) -> tuple[float, float]:
    """The variance between campaigns of one level beyond that of runs, and its degrees of freedom.

    It is that of the last level, or of all levels if that has few campaigns. Ratios of latencies vary equally on all
    levels; error fractions vary more if they are larger.
    """
    if not earlier:
        return 0.0, 0.0
    series = history.as_series(earlier)
    numbers = levels.levels(series, least)
    start = int((numbers != numbers[-1]).sum())
    if len(earlier) - start >= levels.LEAST_TO_ESTIMATE or earlier[-1].is_share:
        return levels.between_variance(series.part(start, len(earlier)))
    return levels.between_variance(series, numbers)


# --- warnings and units ----------------------------------------------------------------------------------------------


def _failure_warnings(cells: Sequence[_Cell], judged: Collection[CampaignKey]) -> list[str]:
    """A text for each variant of the `judged` campaigns with so many failed requests that they affect latencies."""
    many = [cell for cell in cells if _campaign(cell) in judged and (cell[ERRORS] or 0.0) > DECIDING_SHARE]
    texts = []
    for (app, host, _, variant), group in _by_variant(many):
        most = max(cell[ERRORS] for cell in group)
        affects_latencies = any(failed(cell) is not None for cell in group)
        share = f"{'up to ' * (len(group) > 1)}{percent(most)} of requests"
        what = failed_text(most) if affects_latencies else "failed"
        texts.append(f"{app}/{host}: {variant} {_at_rates(group)}: {share} {what}")
    return texts


def _lag_warnings(cells: Sequence[_Cell], campaigns: Collection[tuple[str, ...]]) -> list[str]:
    """A text for each variant of the `campaigns` some of whose runs were sent late."""
    texts = []
    for key, group in _by_variant([cell for cell in cells if cell["n_late"] and _campaign(cell) in campaigns]):
        runs = f"{sum(cell['n_late'] for cell in group)} of {sum(cell['n_runs'] for cell in group)} runs"
        texts.append(f"{'/'.join(key[:3])}: {key[3]} {_at_rates(group)}: {runs} were sent late by the load generator")
    return texts


def _number_warnings(cells: Sequence[_Cell], findings: Sequence[Finding]) -> list[str]:
    """A text for each variant that its reference sent by another number of load generators."""
    found = {(*_campaign(cell), cell["variant"], cell["rate"]): cell for cell in cells}
    pairs: dict[tuple[str, ...], dict[float, _Cell]] = defaultdict(dict)
    for each in findings:
        sides = (each.candidate, each.reference or "")
        here, before = (found.get((each.app, each.host, at, each.variant, each.rate)) for at in sides)
        if here and before and here["sent_by"] != before["sent_by"]:
            pairs[each.app, each.host, each.variant, here["sent_by"], before["sent_by"]][each.rate] = here
    return [
        f"{app}/{host}: {variant} {_at_rates([*group.values()])}: sent by {here}, in the reference by {before}; "
        f"{SENT_ALIKE}"
        for (app, host, variant, here, before), group in sorted(pairs.items())
    ]


def _by_variant(cells: Sequence[_Cell]) -> list[tuple[tuple[str, str, str, str], list[_Cell]]]:
    """Cells by app, host, timestamp and variant, sorted."""
    return sorted(by_key(cells, lambda cell: (*_campaign(cell), cell["variant"])).items())


def _at_rates(cells: Sequence[_Cell]) -> str:
    rates = listed(map(rate_text, sorted({cell["rate"] for cell in cells})))
    return f"at {rates} {load_unit(cell['load_model'] for cell in cells)}"


def _campaign(row: Mapping[str, Any]) -> CampaignKey:
    return row["app"], row["host"], row["timestamp"]


def _with_units(findings: Sequence[Finding], cells: Sequence[_Cell]) -> list[Finding]:
    """Findings with the unit of their rates: as measured there, else in other campaigns, else as all in that one."""

    def keys(campaign: CampaignKey, variant: str, rate: float) -> list[tuple[object, ...]]:
        return [(*campaign, variant, rate), (*campaign[:2], variant, rate), campaign]

    models = defaultdict(set)
    for cell in cells:
        for key in keys(_campaign(cell), cell["variant"], cell["rate"]):
            models[key].add(cell["load_model"])
    found = []
    for each in findings:
        known = (models[key] for key in keys(each.campaign, each.variant, each.rate) if key in models)
        found.append(replace(each, unit=load_unit(next(known, {None}))))
    return found


# --- which campaigns -------------------------------------------------------------------------------------------------


def _selected(candidates: Sequence[Campaign], campaigns: Sequence[Campaign], options: Options) -> set[CampaignKey]:
    """The campaign of each app and host to judge."""
    for name, known in ((options.candidate, candidates), (options.reference, campaigns)):
        if parse_timestamp(name) is not None and all(layout.text(each.timestamp) != name for each in known):
            which = "complete campaign" if known is candidates else "campaign"
            raise LoadstoneError(f"gate: the archive has no {which} {name}, which `gate` in config/config.yaml names")
    newest: dict[tuple[str, str], Campaign] = {}
    for campaign in sorted(candidates, key=lambda campaign: _started(campaign.timestamp)):
        if options.candidate in ("newest", layout.text(campaign.timestamp)):
            newest[campaign.app, campaign.host] = campaign
    if not newest:
        raise LoadstoneError("gate: the archive has no complete campaign, so there is nothing to judge")
    return {_key(campaign) for campaign in newest.values()}


def _started(timestamp: str) -> tuple[float, str]:
    started = parse_timestamp(timestamp)
    return (-math.inf if started is None else started.timestamp()), timestamp


def _key(campaign: Campaign) -> CampaignKey:
    return _campaign(layout.campaign_key(campaign))


def _newer(judged: set[CampaignKey], campaigns: Sequence[Campaign], options: Options) -> list[CampaignKey]:
    """Campaigns that started after those that are judged as the newest."""
    if options.candidate != "newest":
        return []
    started = {key[:2]: _started(key[2]) for key in judged}
    keys = sorted(_key(each) for each in campaigns)
    return [key for key in keys if key[:2] in started and _started(key[2]) > started[key[:2]]]


def _no_longer_measured(places: Sequence[_Place], judged: set[CampaignKey], options: Options) -> list[Finding]:
    """Figures that the reference, or the previous campaign, has and the candidate neither measured nor planned."""
    findings = []
    for key in sorted(judged):
        same_host = [place for place in places if place[:2] == key[:2]]
        own = {place[3:5] for place in same_host if place[2] == key[2]}
        earlier = {place[2] for place in same_host if place[5] and _started(place[2]) < _started(key[2])}
        if parse_timestamp(options.reference) is not None:
            earlier &= {options.reference}
        if not own or not earlier:
            continue
        last = max(earlier, key=_started)
        findings += [
            _missing_runs((*key, variant, rate), statistic, f"not measured, but it was in {last}")
            for variant, rate in sorted({place[3:5] for place in same_host if place[2] == last and place[5]} - own)
            for statistic in options.statistics
        ]
    return findings
