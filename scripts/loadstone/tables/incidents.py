"""What of a run's incidents puts its figures in doubt, in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Kinds of incidents, the worst first; other kinds (warnings, pods that were added) say nothing against a run by
# themselves.
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


def trouble(incidents: Sequence[Mapping[str, Any]]) -> str | None:
    """``containers killed for lack of memory: 3 (shop/web-1, container app)``; None when nothing of that kind happened.

    `incidents` are rows of the table of that name, of one run.
    """
    found = []
    for kind, words in DOUBTFUL.items():
        if own := [incident for incident in incidents if incident["kind"] == kind]:
            found.append(f"{words}: {sum(incident['count'] for incident in own)} ({_named(own)})")
    return "; ".join(found) or None


def unknown(incidents: Iterable[Mapping[str, Any]]) -> list[str]:
    """What could not be found out."""
    texts = [incident["text"] for incident in incidents if incident["kind"] == "unknown"]
    return [text or "it is not known what happened" for text in texts]


def _named(incidents: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(map(_name, incidents)))
    more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more


def _name(incident: Mapping[str, Any]) -> str:
    container = incident["container"]
    return (incident["object"] or "unknown") + (f", container {container}" if container else "")
