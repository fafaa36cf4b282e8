"""Decides which runs are excluded from statistics, and why. Nothing else decides it: all use `runs.excluded`.

Also which incidents make a run doubtful: they do not exclude it, but a tag is suggested.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from loadstone.archive.run_records import Incident

# A run may differ by this share from rate x duration; at high rates a tool sends a few requests more or fewer.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Verdict:
    """The judgement of one run. `complete` is None when it is not known how many requests it should have."""

    complete: bool | None
    tags: list[str]
    reasons: list[str]
    unfit: bool  # because of the data, not of tags

    @property
    def excluded(self) -> bool:
        """Whether statistics exclude the run."""
        return bool(self.reasons)


def judge(
    fact: Mapping[str, Any],
    requests: int | None,
    repeated: int,
    tags: Sequence[Mapping[str, Any]],
    excluding: Collection[str],
    *,
    ambiguous: bool = False,
    linked_to: str | None = None,
    loads: Collection[str] = (),
    protocols: Collection[str] = (),
) -> Verdict:
    """Judge one run by a row of `facts` and by its requests; reasons are texts to show.

    `tags` are rows that `matches` understands, with ``tag`` and ``reason``; tags named in `excluding` exclude.
    `repeated` counts requests whose number another has too; `ambiguous`: another folder holds the same run; `linked_to`
    names the other run whose file this one only links to. `loads` are the ways in which the runs of its rate and
    variant were measured, in words, and `protocols` those by which they are known to be sent.
    """
    complete = _is_complete(requests, fact["expected_requests"])
    reasons = list(fact["faults"])
    if requests is not None and complete is False:
        reasons.append(f"{requests:,} requests instead of {fact['expected_requests']:,}")
    if repeated:
        reasons.append(f"{repeated:,} requests appear more than once")
    if ambiguous:
        reasons.append("another folder of the same rate and variant holds a run of this number")
    if linked_to is not None:
        reasons.append(f"is a link to {linked_to}, which is another run")
    if len(loads) > 1:
        ways = " and ".join(sorted(loads))
        reasons.append(f"there are runs of {ways} under this rate and variant, which are never pooled")
    if len(protocols) > 1:
        ways = " and ".join(sorted(protocols))
        reasons.append(f"runs of this rate and variant were sent over {ways}, which are never pooled")
    unfit = bool(reasons)
    matching = [tag for tag in tags if matches(tag, fact)]
    reasons += [
        ": ".join(part for part in (f"tagged {tag['tag']}", tag.get("reason")) if part)
        for tag in matching
        if tag["tag"] in excluding
    ]
    return Verdict(complete, sorted({tag["tag"] for tag in matching}), reasons, unfit)


def _is_complete(requests: int | None, expected: int | None) -> bool | None:
    if expected is None:
        return None
    return requests is not None and abs(requests - expected) <= max(TOLERANCE * expected, 1 if expected > 1 else 0)


def matches(tag: Mapping[str, Any], fact: Mapping[str, Any]) -> bool:
    """Whether a tag concerns a run.

    It does by ``variant`` (canonical or folder), ``rate`` and ``run``, or by a ``pattern`` for
    ``<timestamp>/<rate>/<variant folder>/<file>``, where ``*`` crosses ``/`` too. All are patterns of `fnmatch`. The
    files of a run are its results as they are named, or as the archive would name them.
    """
    if (pattern := tag.get("pattern")) is not None:
        return any(fnmatchcase(path, pattern) for path in _paths(fact))
    return (
        any(fnmatchcase(fact[name], str(tag.get("variant") or "*")) for name in ("variant", "variant_dir"))
        and fnmatchcase(f"{fact['rate']:.15g}", str(tag.get("rate") or "*"))
        and fnmatchcase(str(fact["run"]), str(tag.get("run") or "*"))
    )


def _paths(fact: Mapping[str, Any]) -> Iterator[str]:
    cell = f"{fact['timestamp']}/{fact['rate']:.15g}/{fact['variant_dir']}"
    yield f"{cell}/{fact['run']}.results.json.zst"
    yield f"{cell}/{fact['run']}.summary.json"
    if fact.get("source"):
        yield fact["source"].split("/", 2)[-1]


# --- incidents --------------------------------------------------------------------------------------------------------

# Kinds of incidents that make a run doubtful, the worst first; others (warnings, pods that were added) do not.
DOUBTFUL = {
    "oom": "containers killed for lack of memory",
    "restart": "containers restarted",
    "ended": "containers ended",
    "evicted": "pods evicted",
    "failed": "pods failed",
    "replaced": "pods replaced",
    "vanished": "pods lost",
}
_NAMED = 3


def target_problem(incidents: Sequence[Incident]) -> str | None:
    """``containers killed for lack of memory: 3 (shop/web-1, container app)``; None when nothing of that kind happened.

    `incidents` are those of one run.
    """
    found = []
    for kind, words in DOUBTFUL.items():
        if own := [incident for incident in incidents if incident.kind == kind]:
            found.append(f"{words}: {sum(incident.count for incident in own)} ({_named(own)})")
    return "; ".join(found) or None


def unknown(incidents: Sequence[Incident]) -> list[str]:
    """Texts about incidents that could not be determined."""
    texts = [incident.text for incident in incidents if incident.kind == "unknown"]
    return [text or "it is unknown what happened" for text in texts]


def _named(incidents: Sequence[Incident]) -> str:
    names = list(dict.fromkeys(map(_name, incidents)))
    more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more


def _name(incident: Incident) -> str:
    return (incident.object or "unknown") + (f", container {incident.container}" if incident.container else "")
