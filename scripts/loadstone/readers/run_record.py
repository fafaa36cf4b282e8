"""The record that collecting leaves beside a run (``<run>.run.json``): what happened to its target meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.readers.base import Problems
from loadstone.readers.stream import read_object

_MOST = 1e9  # far beyond any figure
_TEXTS = ("kind", "object", "container", "reason", "text")


@dataclass(frozen=True)
class RunRecord:
    """`incidents`: the columns of the table of that name behind its key. What is absent is None."""

    incidents: list[dict[str, Any]]
    generator_cpus: float | None


def read(path: Path, problems: Problems) -> RunRecord | None:
    """What the tables take from a run's record; None when it can't be read."""
    record = read_object(path, problems, "record of a run")
    if record is None:
        return None
    told, sampling = record.get("incidents"), record.get("sampling")
    cpus = sampling.get("generator_cpus") if isinstance(sampling, dict) else None
    return RunRecord(list(_incidents(told if isinstance(told, list) else [])), _positive(cpus))


def _incidents(told: list[Any]) -> Iterator[dict[str, Any]]:
    """Only what has a kind is one."""
    for incident in told:
        if isinstance(incident, dict) and isinstance(incident.get("kind"), str):
            texts = {name: _text(incident.get(name)) for name in _TEXTS}
            yield texts | {"count": max(1, int(_positive(incident.get("count")) or 1))}


def _positive(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        return None
    return float(value)


def _text(value: object) -> str | None:
    """Half of a surrogate pair is no text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else None
