"""The record that collecting or importing leaves beside a run (``<run>.run.json``): what happened, where, and when."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20
_MOST = 1e9  # far beyond any figure of an incident
_CLOCK = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")
_TEXTS = ("kind", "object", "container", "reason", "text")


@dataclass(frozen=True)
class Incident:
    """What happened to a run's target during the attack: the columns of table ``incidents`` behind its key."""

    kind: str
    object: str | None
    container: str | None
    reason: str | None
    text: str | None
    count: int


@dataclass(frozen=True)
class Sender:
    """One of several generators that shared the load: where it ran, and its clock relative to the collecting machine's.

    The fields are those of `loadstone.tables.schema_analysis.SENDER`.
    """

    generator: int
    place: str | None
    clock_offset_ns: int | None
    clock_uncertainty_ns: int | None
    clock_drift_ns: int | None


@dataclass(frozen=True)
class RunRecord:
    """One run; None where the record does not say. `load_1min` is the machine's load average right after the run."""

    started: str | None = None
    ended: str | None = None
    loadstone: str | None = None
    system: str | None = None
    cpus: float | None = None
    load_1min: float | None = None
    body_sha256: str | None = None  # of the answer before the attack
    body_bytes: float | None = None
    server_version: str | None = None  # of the cluster
    images: tuple[str, ...] = ()  # of its pods, as ``container: image``, each once
    pods: tuple[tuple[str, int], ...] = ()  # namespace and how many pods it had there
    in_cluster: bool = False
    watched: bool = False  # whether somebody looked at what happened to it during the attack
    incidents: tuple[Incident, ...] = ()
    generator_cpus: float | None = None  # how many processors the load generator could use
    description: str | None = None
    senders: tuple[Sender, ...] = ()


def read(path: Path) -> RunRecord:
    """Read one record. What is missing, broken or of another type is None."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return RunRecord()
    return parse(content)


def parse(content: Any) -> RunRecord:
    """The same of a record's JSON."""
    return RunRecord(
        started=_text(content, "started"),
        ended=_text(content, "ended"),
        loadstone=_text(content, "loadstone"),
        system=_text(content, "machine", "system"),
        cpus=_number(content, "machine", "cpus"),
        load_1min=_number(content, "machine", "load_1min"),
        body_sha256=_text(content, "identity", "body_sha256"),
        body_bytes=_number(content, "identity", "body_bytes"),
        server_version=_text(content, "cluster", "server_version"),
        images=_images(_at(content, "cluster", "pods")),
        pods=_pods(_at(content, "cluster", "pods")),
        in_cluster=isinstance(_at(content, "cluster"), dict),
        watched=isinstance(_at(content, "incidents"), list),
        incidents=tuple(_incidents(_at(content, "incidents"))),
        generator_cpus=_positive(_at(content, "sampling", "generator_cpus")),
        description=_any_text(_at(content, "description")),
        senders=tuple(_senders(_at(content, "generators"))),
    )


def _incidents(listed: Any) -> Iterator[Incident]:
    """Only what has a kind is one."""
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and isinstance(each.get("kind"), str):
            kind, what, container, reason, text = map(_any_text, map(each.get, _TEXTS))
            yield Incident(kind or "", what, container, reason, text, max(1, int(_positive(each.get("count")) or 1)))


def _senders(listed: Any) -> Iterator[Sender]:
    for each in listed if isinstance(listed, list) else []:
        number = each.get("generator") if isinstance(each, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _MOST:
            continue
        pod, node = _any_text(each.get("pod")), _any_text(each.get("node"))
        # Of this machine's, which may share a process.
        here = [f"{name} {each[name]}" for name in ("process", "processor") if type(each.get(name)) is int]
        place = " on ".join(here) + (", not pinned" if here and "not_pinned" in each else "") or None
        offset_ns, uncertainty_ns, drift_ns = map(_nanoseconds, map(each.get, _CLOCK))
        yield Sender(number, f"{pod} on {node}" if pod and node else place, offset_ns, uncertainty_ns, drift_ns)


def _pods(pods: Any) -> tuple[tuple[str, int], ...]:
    names = [_text(pod, "pod") for pod in (pods if isinstance(pods, list) else [])]
    return tuple(sorted(Counter(name.partition("/")[0] for name in names if name).items()))


def _images(pods: Any) -> tuple[str, ...]:
    found = {
        f"{container}: {image}"
        for pod in (pods if isinstance(pods, list) else [])
        if isinstance(images := _at(pod, "images"), dict)
        for container, image in images.items()
        if isinstance(image, str) and len(image) < 1000
    }
    return tuple(sorted(found))


def _at(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _text(content: Any, *keys: str) -> str | None:
    value = _at(content, *keys)
    return value if isinstance(value, str) and len(value) < 1000 else None


def _number(content: Any, *keys: str) -> float | None:
    value = _at(content, *keys)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e15 else None


def _positive(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < _MOST else None


def _nanoseconds(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _any_text(value: Any) -> str | None:
    """A text of any length as tables can hold it: half of a surrogate pair is no text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else None
