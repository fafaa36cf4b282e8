"""Weaknesses of the conditions: what was otherwise between the runs that are compared, besides their variants."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from loadstone.load_words import listed
from loadstone.tables import layout
from loadstone.tables.claims.declared import FAR_APART_DAYS, LIMITS, NOTE, SERIOUS, Weakness
from loadstone.tables.claims.evidence import Evidence, counted

_UNDATED = 1  # the year of a campaign whose name is no timestamp


def hosts(evidence: Evidence) -> Iterator[Weakness]:
    """Hosts that are pooled or compared."""
    runs = Counter(run["host"] for run in evidence.runs)
    if len(runs) > 1:
        text = f"Its runs are of {len(runs)} hosts ({_parts(runs)}): the machine may be what differs."
        yield Weakness("hosts", SERIOUS, text, len(runs), len(runs), "hosts")


def replicas(evidence: Evidence) -> Iterator[Weakness]:
    """Unlike numbers of replicas."""
    runs = Counter(run["replicas"] for run in evidence.runs if run["replicas"] is not None)
    if len(runs) > 1:
        parts = [f"{number} in {counted(count, 'run')}" for number, count in sorted(runs.items())]
        text = f"The number of replicas differs: {listed(parts)}."
        yield Weakness("replicas", SERIOUS, text, len(runs), len(runs), "numbers")


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
        (campaign.instant, layout.text(campaign.timestamp))
        for campaign in evidence.scope.campaigns
        if (layout.text(campaign.host), layout.text(campaign.timestamp)) in measured
        and campaign.instant.year > _UNDATED
    )
    if not dated:
        return
    (first, first_name), (last, last_name) = dated[0], dated[-1]
    if (apart := last - first) > timedelta(days=FAR_APART_DAYS):
        text = (
            f"Its runs are of {counted(len(dated), 'campaign')} from {first_name} to {last_name}, {apart.days} days "
            "apart: what else changed in that time may be what differs."
        )
        yield Weakness("far_apart", LIMITS, text, len(dated), len(measured), "campaigns")


def _parts(runs: Mapping[str, int]) -> str:
    return listed(_each(sorted(runs.items())))


def _each(runs: Iterable[tuple[str, int]]) -> Iterator[str]:
    for name, count in runs:
        yield f"{name} with {counted(count, 'run')}"
