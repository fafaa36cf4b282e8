"""Did it get slower since? The newest complete campaign of each app and host against earlier ones of the archive.

Each figure (a statistic of a variant at a rate) is compared with the same figure of earlier campaigns that measured it
in the same way; tests are those of `loadstone.stats.slower`, of shares of failures those of `loadstone.stats.shares`.
That one of all is called worse by chance happens at most once in 20 (1 - confidence): p values are adjusted by Holm's
method. That all are no worse needs no adjustment, since each of them has to show it (Berger 1982, "Multiparameter
hypothesis testing", Technometrics 24(4)). The best of several references is not picked by its value, which would be
chance in part: a figure is worse than the best of them when it is worse than any, with as many tests more.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadstone import config, sql
from loadstone.archive import Campaign, parse_timestamp
from loadstone.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.gate_finding import Finding
from loadstone.report.navigation import GATE as FILE
from loadstone.stats import history as levelling
from loadstone.stats import shares
from loadstone.stats.families import holm
from loadstone.stats.slower import Difference, difference
from loadstone.tables import database, history, layout, schema, unbounded
from loadstone.tables.figures_of_cells import ERRORS, Figure, change, figure, lacks, unsure

WORSE, NO_WORSE, CANNOT_TELL = "worse", "no worse", "cannot tell"

_Cell = dict[str, Any]
_Key = tuple[str, str, str]
_Place = tuple[str, str, str, str, float, bool]  # the last: whether there are runs of it
_UNCOUNTED, _UNMEASURED = "none of its runs counts", "planned, and not measured"
_SHOWN = 20


@dataclass(frozen=True)
class Options:
    """What `gate:` of the configuration says. `ratio` and `error_fraction` are allowed, `runs` are needed.

    `reference` is ``previous``, ``best of last N`` or a timestamp, `candidate` ``newest`` or a timestamp. `margin` is
    the least step that makes another level of earlier campaigns.
    """

    reference: str
    candidate: str
    statistics: tuple[str, ...]
    ratio: float
    error_fraction: float
    runs: int
    cannot_tell: str
    overrides: tuple[Mapping[str, Any], ...]
    margin: float
    confidence: float

    @property
    def last(self) -> int:
        """How many earlier campaigns a cell is compared with."""
        return int(self.reference.rpartition(" ")[2]) if self.reference.startswith("best of last ") else 1

    def allowed(self, cell: Mapping[str, Any], statistic: str) -> float:
        """How far a figure may be from the reference, on the scale of comparison; the last override counts."""
        of = {"ratio": self.ratio, ERRORS: self.error_fraction}
        for override in self.overrides:
            if all(cell[name] == override.get(name, cell[name]) for name in ("app", "variant")):
                of |= {name: config.share(override[name]) for name in of if name in override}
        return of[ERRORS] if statistic == ERRORS else math.log(of["ratio"])


@dataclass(frozen=True)
class Judged:
    """All findings of one gate."""

    findings: Sequence[Finding]
    options: Options
    campaigns: Sequence[_Key] = ()  # that were judged
    newer: Sequence[_Key] = ()  # that were not, for they are not complete

    @property
    def outcome(self) -> str:
        verdicts = {finding.verdict for finding in self.findings}
        if WORSE in verdicts:
            return WORSE
        return NO_WORSE if verdicts == {NO_WORSE} else CANNOT_TELL

    @property
    def fails(self) -> bool:
        """Whether the command is to end with an error."""
        return self.outcome == WORSE or (self.outcome == CANNOT_TELL and self.options.cannot_tell == "fail")

    def lines(self) -> Iterator[str]:
        """What people are told."""
        counts = Counter(finding.verdict for finding in self.findings)
        named = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (WORSE, NO_WORSE, CANNOT_TELL))
        yield f"gate: {self.outcome}. {len(self.findings)} figures against {self.options.reference}: {named}"
        for text, keys in (("judged", self.campaigns), ("newer, and not judged since it is not complete", self.newer)):
            yield from (f"  {text}: {'/'.join(key)}" for key in keys)
        for verdict in (WORSE, CANNOT_TELL):
            found = [finding for finding in self.findings if finding.verdict == verdict]
            for finding in found[:_SHOWN]:
                yield f"  {verdict}: {finding.text()}"
            if len(found) > _SHOWN:
                yield f"  {verdict}: {len(found) - _SHOWN} more, see {FILE}"
        if self.outcome == CANNOT_TELL:
            how = "fails" if self.fails else "passes"
            yield f"  Nothing got worse for certain, but not every figure is known to be no worse; that {how} here "
            yield "  (gate.cannot_tell in config/config.yaml). More runs tell more."

    def write(self, reports: Path) -> None:
        """Leave all of it for machines. Raises LoadstoneError."""
        options = asdict(self.options) | {"overrides": [dict(each) for each in self.options.overrides]}
        content = {"outcome": self.outcome, "fails": self.fails, "options": options}
        content["campaigns"] = ["/".join(key) for key in self.campaigns]
        content["figures"] = [asdict(finding) for finding in self.findings]
        try:
            reports.mkdir(parents=True, exist_ok=True)
            replace(reports / FILE, json.dumps(content, indent=1, allow_nan=False).encode())
        except OSError as error:
            raise LoadstoneError(f"{reports / FILE} cannot be written: {error.strerror or error}") from None


def options(declared: Mapping[str, Any], margin: float = 0.05, confidence: float = 0.95) -> Options:
    """From the checked configuration: its `gate`, and two of its `analysis`."""
    found = dict(declared)
    found["error_fraction"] = config.share(found["error_fraction"])
    found |= {name: tuple(found[name]) for name in ("statistics", "overrides")}
    return Options(**found, margin=margin, confidence=confidence)


def judge(campaigns: Sequence[Campaign], candidates: Sequence[Campaign], tables: Path, options: Options) -> Judged:
    """Judge one of the `candidates` of each app and host by the tables of all `campaigns`.

    Raises LoadstoneError when the configuration names a campaign that is not there.
    """
    chosen = _chosen(candidates, campaigns, options)
    with database.open_memory() as connection:
        cells = history.measured(connection, tables, campaigns)
        unbounded.add(connection, tables, campaigns, cells)
        database.add_view(connection, tables, "planned", schema.PLANNED, campaigns)
        places: list[_Place] = connection.sql(sql.load("gate_places")).fetchall()
    told = judge_cells(cells, places, chosen, options) + _vanished(places, chosen, options)
    told += _empty(chosen, {_campaign(row) for row in cells} | {place[:3] for place in places})
    order = sorted(told, key=lambda each: (each.app, each.host, each.rate, each.variant, each.statistic))
    return Judged(order, options, sorted(chosen), _newer(chosen, campaigns, options))


def judge_cells(
    cells: Sequence[_Cell], places: Sequence[_Place], chosen: Collection[_Key], options: Options
) -> list[Finding]:
    """Findings on all figures of the `chosen` campaigns.

    `cells` are those of `history.measured`; `places` name the variants and rates that are planned or measured.
    """
    tested: list[_Tested] = []
    told: list[Finding] = []
    for group in history.series(cells):
        for position, cell in enumerate(group):
            for statistic in options.statistics if _campaign(cell) in chosen else ():
                found = _compared(group[:position], cell, statistic, options)
                if isinstance(found, Finding):
                    told.append(found)
                else:
                    tested.append(found)
    have = {(*_campaign(cell), cell["variant"], cell["rate"]) for cell in cells}
    told += [
        Finding(app, host, time, variant, rate, statistic, CANNOT_TELL, _UNCOUNTED if is_measured else _UNMEASURED)
        for app, host, time, variant, rate, is_measured in places
        if (app, host, time) in chosen and (app, host, time, variant, rate) not in have
        for statistic in options.statistics
    ]
    adjusted = holm([each.p_worse for each in tested]) if tested else []
    return told + [each.finding(p, options) for each, p in zip(tested, adjusted, strict=True)]


# --- which campaigns -------------------------------------------------------------------------------------------------


def _chosen(candidates: Sequence[Campaign], campaigns: Sequence[Campaign], options: Options) -> set[_Key]:
    """The campaign of each app and host that is judged."""
    for name, of in ((options.candidate, candidates), (options.reference, campaigns)):
        if parse_timestamp(name) is not None and all(layout.text(each.timestamp) != name for each in of):
            which = "complete campaign" if of is candidates else "campaign"
            raise LoadstoneError(f"gate: the archive holds no {which} {name}; `gate` in config/config.yaml names it")
    newest: dict[tuple[str, str], Campaign] = {}
    for campaign in sorted(candidates, key=lambda campaign: _started(campaign.timestamp)):
        if options.candidate in ("newest", layout.text(campaign.timestamp)):
            newest[campaign.app, campaign.host] = campaign
    if not newest:
        raise LoadstoneError("gate: the archive holds no complete campaign, so there is nothing to judge")
    return {_key(campaign) for campaign in newest.values()}


def _started(timestamp: str) -> tuple[float, str]:
    started = parse_timestamp(timestamp)
    return (-math.inf if started is None else started.timestamp()), timestamp


def _key(campaign: Campaign) -> _Key:
    app, host, timestamp = layout.campaign_key(campaign).values()
    return app, host, timestamp


def _campaign(cell: Mapping[str, Any]) -> _Key:
    return cell["app"], cell["host"], cell["timestamp"]


def _newer(chosen: set[_Key], campaigns: Sequence[Campaign], options: Options) -> list[_Key]:
    """What began after the campaigns that are judged as the newest."""
    if options.candidate != "newest":
        return []
    judged = {key[:2]: _started(key[2]) for key in chosen}
    keys = sorted(_key(each) for each in campaigns)
    return [key for key in keys if key[:2] in judged and _started(key[2]) > judged[key[:2]]]


def _vanished(places: Sequence[_Place], chosen: set[_Key], options: Options) -> list[Finding]:
    """What the reference, or the campaign before, measured and the candidate neither measured nor planned."""
    told = []
    for key in sorted(chosen):
        of = [place for place in places if place[:2] == key[:2]]
        have = {place[3:5] for place in of if place[2] == key[2]}
        before = {place[2] for place in of if place[5] and _started(place[2]) < _started(key[2])}
        if parse_timestamp(options.reference) is not None:
            before &= {options.reference}
        if not have or not before:
            continue
        last = max(before, key=_started)
        lacking = sorted({place[3:5] for place in of if place[2] == last and place[5]} - have)
        told += [
            Finding(*key, variant, rate, statistic, CANNOT_TELL, f"not measured, as it was in {last}")
            for variant, rate in lacking
            for statistic in options.statistics
        ]
    return told


def _empty(chosen: set[_Key], present: set[_Key]) -> list[Finding]:
    return [
        Finding(*key, "any variant", 0.0, "all", CANNOT_TELL, "it holds no run") for key in sorted(chosen - present)
    ]


# --- one figure ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tested:
    cell: _Cell
    later: Figure
    earlier: Sequence[tuple[_Cell, Figure]]
    differences: Sequence[Difference | shares.Difference]
    allowed: float

    @property
    def p_worse(self) -> float:
        """Of being worse than any of the references. What is only the least that one may be tells nothing of that."""
        pairs = zip(self.differences, self.earlier, strict=True)
        known = [each.p_above(self.allowed) for each, (_, before) in pairs if not before.at_least]
        return min(1.0, len(known) * min(known)) if known else 1.0

    def finding(self, adjusted: float, options: Options) -> Finding:
        """`adjusted`: the p value of being worse, over all figures of the gate."""
        alpha = 1 - options.confidence
        # Shown is the reference that the figure is furthest above, of those that are known if there are any.
        order = [
            (not before.at_least, each.shift) for each, (_, before) in zip(self.differences, self.earlier, strict=True)
        ]
        nearest = max(range(len(order)), key=lambda at: order[at])
        shown, (reference, before) = self.differences[nearest], self.earlier[nearest]
        verdict = CANNOT_TELL
        if adjusted < alpha:
            verdict = WORSE
        elif not self.later.at_least and all(each.p_below(self.allowed) < alpha for each in self.differences):
            verdict = NO_WORSE
        bounds = (shown.shift, *shown.interval(options.confidence), self.allowed)
        shift, low, high, allowed = (change(each, is_share=self.later.is_share) for each in bounds)
        why = "the interval holds what is allowed" if verdict == CANNOT_TELL else None
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
            p_worse=adjusted,
            at_least=self.later.at_least,
            reference_at_least=before.at_least,
        )


def _compared(before: Sequence[_Cell], cell: _Cell, statistic: str, options: Options) -> _Tested | Finding:
    """One figure with those of earlier campaigns (`before`, of the same series), or why that can't be."""

    def refused(why: str) -> Finding:
        return Finding(*_campaign(cell), cell["variant"], cell["rate"], statistic, CANNOT_TELL, why)

    later = figure(cell, statistic, options.confidence)
    if later is None:
        return refused(lacks(cell, statistic))
    told = [(each, found) for each in before if (found := figure(each, statistic, options.confidence)) is not None]
    if parse_timestamp(options.reference) is not None:
        references = [(each, found) for each, found in told if each["timestamp"] == options.reference]
    else:
        references = told[-options.last :]
    if not references:
        return refused("no such earlier campaign measured it in the same way")
    fewest = min(each.n_runs for each in (later, *(found for _, found in references)))
    if fewest < options.runs:
        return refused(f"rests on {fewest} of the {options.runs} runs that are needed")
    for of, found in ((cell, later), *references):
        if math.isnan(found.error):
            return refused(unsure(of, statistic))
    if later.at_least:
        references = [(each, found) for each, found in references if not found.at_least]
        if not references:
            return refused("it falls among requests that timed out, as it did before")
    between = _between(
        [found for _, found in told if not found.at_least], history.least_step(statistic, options.margin)
    )
    differences = [_difference(found, later, between) for _, found in references]
    return _Tested(cell, later, references, differences, options.allowed(cell, statistic))


def _difference(earlier: Figure, later: Figure, between: tuple[float, float]) -> Difference | shares.Difference:
    if earlier.share and later.share:
        return shares.Difference(earlier.share, later.share, between)
    before, after = ((each.scaled, each.error, each.freedom) for each in (earlier, later))
    return difference(before, after, between)


def _between(earlier: Sequence[Figure], least: float) -> tuple[float, float]:
    """By how much campaigns of the last level differ beyond their runs."""
    if not earlier:
        return 0.0, 0.0
    series = history.as_series(earlier)
    numbers = levelling.levels(series, least)
    start = int((numbers != numbers[-1]).sum())
    return levelling.between_variance(series.part(start, len(earlier)))
