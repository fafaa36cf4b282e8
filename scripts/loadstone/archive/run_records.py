"""What ``<run>.run.json`` says of how a run was collected. Only campaigns that Loadstone collected have it."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20


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


def read(path: Path) -> RunRecord:
    """Read one record. What is missing, broken or of another type is None."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return RunRecord()
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
    )


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
