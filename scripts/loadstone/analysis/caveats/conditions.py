"""Weaknesses of the conditions: what was otherwise between the runs that are compared, besides their variants."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from loadstone.analysis.caveats.definitions import FAR_APART_DAYS, LIMITS, NOTE, SERIOUS, Weakness
from loadstone.analysis.caveats.evidence import Evidence, counted
from loadstone.analysis.scope import Series
from loadstone.tables import layout
from loadstone.text import listed

_Row = dict[str, Any]

_UNDATED = 1  # the year of a campaign whose name is no timestamp


def hosts(evidence: Evidence) -> Iterator[Weakness]:
    """Hosts that are pooled or compared."""
    runs = Counter(run["host"] for run in evidence.runs)
    if len(runs) > 1:
        text = f"Its runs are of {len(runs)} hosts ({_parts(runs)}): the machine may be what differs."
        found = _beside(evidence, lambda runs: len({run["host"] for run in runs}) > 1)
        yield _unlike(evidence, "hosts", text, found, (len(runs), len(runs), "hosts"))


def replicas(evidence: Evidence) -> Iterator[Weakness]:
    """Unlike numbers of replicas."""
    runs = Counter(_known(evidence.runs, "replicas"))
    if len(runs) > 1:
        parts = [f"{number} in {counted(count, 'run')}" for number, count in sorted(runs.items())]
        found = _beside(evidence, lambda runs: len(set(_known(runs, "replicas"))) > 1)
        text = f"The number of replicas differs: {listed(parts)}."
        if found and len(found) < len(evidence.series):
            text = f"The number of replicas differs: {listed(parts)}; it concerns {evidence.where(found)}."
        yield _unlike(evidence, "replicas", text, found, (len(runs), len(runs), "numbers"))


def sent_by(evidence: Evidence) -> Iterator[Weakness]:
    """One tool's load that was not always sent by the same program, as many of it and over as many connections."""
    if runs := Counter(run["sent_by"] for run in _sent_unlike(evidence.runs)):
        found = _beside(evidence, lambda runs: bool(_sent_unlike(runs)))
        text = f"Requests were sent in {len(runs)} ways: by {_parts(runs)}."
        if found and len(found) < len(evidence.series):
            text = f"{text[:-1]}; it concerns {evidence.where(found)}."
        yield _unlike(evidence, "sent_by", text, found, (len(runs), len(runs), "ways"))


def _sent_unlike(runs: Sequence[_Row]) -> list[_Row]:
    """Runs of the tools whose requests were sent in more than one way."""
    ways = {(run["generator"], run["sent_by"]) for run in runs}
    counts = Counter(generator for generator, _ in ways)
    return [run for run in runs if counts[run["generator"]] > 1]


def _unlike(
    evidence: Evidence, claim: str, text: str, found: Sequence[Series], numbers: tuple[int, int, str]
) -> Weakness:
    """Serious for the cells that are set beside others; a reservation about the whole where none is."""
    return Weakness(claim, SERIOUS if found else LIMITS, text, *numbers, cells=evidence.cells(found) if found else None)


def _known(runs: Iterable[_Row], column: str) -> list[Any]:
    return [run[column] for run in runs if run[column] is not None]


def _beside(evidence: Evidence, test: Callable[[Sequence[_Row]], bool]) -> list[Series]:
    """Series for whose runs, beside those of the baseline at that place, a test holds.

    Where the baseline was not measured, beside those of all others there.
    """
    scope, concerned = evidence.scope, []
    for series in evidence.series:
        there = scope.at(series.rate, series.way)
        others = [there[scope.baseline]] if scope.baseline in there else list(there.values())
        if test([run for each in (series, *others) for run in each.runs]):
            concerned.append(series)
    return concerned


def tool_versions(evidence: Evidence) -> Iterator[Weakness]:
    """A weakness per tool."""
    found: dict[str, set[str]] = {}
    for each in evidence.described:
        if each.generator_version:
            found.setdefault(each.generator, set()).add(each.generator_version)
        for tool, version in each.tools.items():
            found.setdefault(tool, set()).add(version)
    for tool, versions in sorted(found.items()):
        if len(versions) > 1:
            text = f"{tool} had {len(versions)} versions: {listed(sorted(versions))}."
            yield Weakness("tool_versions", LIMITS, text, len(versions), len(versions), "versions")


def ways(evidence: Evidence) -> Iterator[Weakness]:
    """Load models and load generators side by side."""
    for column, what in (("load_model", "load models"), ("generator", "load generators")):
        runs = Counter(str(run[column]) for run in evidence.runs)
        if len(runs) > 1:
            text = f"Runs of {len(runs)} {what} stand side by side ({_parts(runs)}); no figure is of two of them."
            if len(evidence.scope.ways) == 1:
                text = f"Its runs are of {len(runs)} {what} ({_parts(runs)}), whose latencies mean the same."
            yield Weakness("ways", NOTE, text, len(runs), len(runs), what)


def far_apart(evidence: Evidence) -> Iterator[Weakness]:
    """Campaigns that are joined over a long time."""
    measured = {(run["host"], run["timestamp"]) for run in evidence.runs}
    dated = sorted(
        (campaign.instant, layout.text(campaign.timestamp), layout.text(campaign.host))
        for campaign in evidence.scope.campaigns
        if (layout.text(campaign.host), layout.text(campaign.timestamp)) in measured
        and campaign.instant.year > _UNDATED
    )
    if not dated:
        return
    (first, first_name, _), (last, last_name, _) = dated[0], dated[-1]
    if (apart := last - first) > timedelta(days=FAR_APART_DAYS):
        text = (
            f"Its runs are of {counted(len(dated), 'campaign')} from {first_name} to {last_name}, {apart.days} days "
            "apart: what else changed in that time may be what differs."
        )
        at = {(host, timestamp): instant for instant, timestamp, host in dated}
        found = _beside(evidence, lambda runs: _span(runs, at) > timedelta(days=FAR_APART_DAYS))
        cells = evidence.cells(found)
        yield Weakness("far_apart", LIMITS, text, len(dated), len(measured), "campaigns", cells=cells)


def _span(runs: Sequence[_Row], at: Mapping[tuple[str, str], datetime]) -> timedelta:
    known = [at[place] for run in runs if (place := (run["host"], run["timestamp"])) in at]
    return max(known) - min(known) if known else timedelta()


def _parts(runs: Mapping[str, int]) -> str:
    return listed(_each(sorted(runs.items())))


def _each(runs: Iterable[tuple[str, int]]) -> Iterator[str]:
    for name, count in runs:
        yield f"{name} with {counted(count, 'run')}"
