"""The record that collecting or importing leaves beside a run (``<run>.run.json``): what happened, and when."""

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
    """`senders` tell of several load generators.

    `incidents`: the columns of the table of that name behind its key. What is absent is None.
    """

    incidents: list[dict[str, Any]]
    generator_cpus: float | None
    started: str | None = None
    description: str | None = None
    senders: tuple[dict[str, Any], ...] = ()


def read(path: Path, problems: Problems) -> RunRecord | None:
    """What the tables take from a run's record; None when it can't be read."""
    record = read_object(path, problems, "record of a run")
    if record is None:
        return None
    told, sampling = record.get("incidents"), record.get("sampling")
    cpus = sampling.get("generator_cpus") if isinstance(sampling, dict) else None
    incidents = list(_incidents(told if isinstance(told, list) else []))
    about = _text(record.get("started")), _text(record.get("description"))
    return RunRecord(incidents, _positive(cpus), *about, tuple(_senders(record.get("generators"))))


def _senders(told: object) -> Iterator[dict[str, Any]]:
    """What is said of each of several generators, as `loadstone.tables.schema_analysis.SENDER` has it."""
    for each in told if isinstance(told, list) else []:
        number = each.get("generator") if isinstance(each, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _MOST:
            continue
        pod, node = _text(each.get("pod")), _text(each.get("node"))
        # Of this machine's, which may share a process.
        here = [f"{name} {each[name]}" for name in ("process", "processor") if type(each.get(name)) is int]
        place = " on ".join(here) + (", not pinned" if here and "not_pinned" in each else "") or None
        names = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")
        yield {
            "generator": number,
            "place": f"{pod} on {node}" if pod and node else place,
            **{name: _nanoseconds(each.get(name)) for name in names},
        }


def _nanoseconds(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


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
