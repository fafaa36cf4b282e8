"""Records of runs: how one was collected or imported, and why attempts at it failed.

Collecting or importing a run writes ``<run>.run.json``: what happened, where, and when. A failed attempt writes
``<run>.failure.<n>.json``: when it failed, in which phase and why. Both are part of the archive: written once, never
changed. A failed attempt is not a result and enters no statistic.
"""

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from loadstone import __version__
from loadstone.archive import Cell
from loadstone.archive.durable import write_new
from loadstone.errors import LoadstoneError
from loadstone.process import tail

_LARGEST_RECORD, _LARGEST_FAILURE = 1 << 20, 16 << 20  # bytes
_MOST = 1e9  # far beyond any figure of an incident
_CLOCK = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")
_TEXTS = ("kind", "object", "container", "reason", "text")
_LOG_LINES = 40  # of each log, in a failure record
_MOST_LOGS = 50
_LONGEST_REASON = 400
_LONGEST_TEXT = 4000
_MOST_EVIDENCE = 3

# The phases of a run in their order, for people; ``warmup`` and ``test`` are the phases of the tables.
PHASES = {
    "waiting": "waiting for another attack to end",
    "target": "starting the target",
    "warmup": "warm-up",
    "test": "attack",
    "results": "target stopped, encoding results",
}


@dataclass(frozen=True)
class Incident:
    """An event of a run's target during the attack: the columns of table ``incidents`` after its key."""

    kind: str
    object: str | None
    container: str | None
    reason: str | None
    text: str | None
    count: int


@dataclass(frozen=True)
class Sender:
    """One of several generators that shared the load: where it ran, and its clock relative to the collecting machine's.

    The struct `sender` in `tables/columns.yaml` has the same fields.
    """

    generator: int
    process: int | None  # which may send for others too; None in a pod
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
    body_sha256: str | None = None  # of the response before the attack
    body_bytes: float | None = None
    server_version: str | None = None  # of the cluster
    images: tuple[str, ...] = ()  # of its pods, as ``container: image``, each once
    pods: tuple[tuple[str, int], ...] = ()  # namespace and how many pods it had there
    in_cluster: bool = False
    watched: bool = False  # whether incidents were looked for
    incidents: tuple[Incident, ...] = ()
    generator_cpus: float | None = None  # that the load generator could use
    description: str | None = None
    senders: tuple[Sender, ...] = ()
    protocol: str | None = None  # ``http1``, ``http2`` or ``h2c``; several joined by " and "
    redacted: tuple[tuple[str, int], ...] = ()  # names of headers and of parameters of URLs, how many values of each
    tls: str | None = None  # version, cipher and the server certificate's SHA-256
    cipher_suite: str | None = None  # version and cipher of TLS


def read_run_record(path: Path) -> RunRecord:
    """Read one record. What is missing, broken or of another type is None."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST_RECORD))
    except (OSError, ValueError, RecursionError):
        return RunRecord()
    return parse(content)


def parse(content: Any) -> RunRecord:
    """The record from its decoded JSON."""
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
        generator_cpus=_number(content, "sampling", "generator_cpus", most=_MOST) or None,
        description=_any_text(_at(content, "description")),
        senders=tuple(_senders(_at(content, "generators"))),
        redacted=removed(_at(content, "redacted")),
        protocol=_negotiated(content, _protocol),
        tls=_negotiated(content, _tls),
        cipher_suite=_negotiated(content, _cipher_suite),
    )


def removed(content: Any) -> tuple[tuple[str, int], ...]:
    """Names and numbers of values that were removed, from a record or metadata; what is neither is ignored."""
    parts = [_at(content, part) for part in ("headers", "query")]
    pairs = (pair for part in parts if isinstance(part, dict) for pair in part.items())
    return tuple((_encodable(name), count) for name, count in pairs if _is_integer(count) and 0 < count < _MOST)


def _negotiated(content: Any, part: Callable[[Any], str | None]) -> str | None:
    """A part of what was negotiated: during the attack where the load generator says so, else before it."""
    during, before = _objects(_at(content, "negotiated")), [_at(content, "identity", "negotiated")]
    found = [sorted({text for entry in entries if (text := part(entry))}) for entries in (during, before)]
    return " and ".join(found[0] or found[1]) or None


def _protocol(entry: Any) -> str | None:
    return _text(entry, "protocol")


def _tls(entry: Any) -> str | None:
    suite = _cipher_suite(entry)
    return f"{suite}, certificate {_text(entry, 'certificate')}" if suite else None


def _cipher_suite(entry: Any) -> str | None:
    version = _text(entry, "tls")
    return f"{version}, {_text(entry, 'cipher')}" if version else None


def _incidents(listed: Any) -> Iterator[Incident]:
    """The incidents of a record; one without a kind is ignored."""
    for each in _objects(listed):
        if isinstance(each.get("kind"), str):
            kind, what, container, reason, text = map(_any_text, map(each.get, _TEXTS))
            count = max(1, int(_number(each, "count", most=_MOST) or 1))
            yield Incident(kind or "", what, container, reason, text, count)


def _senders(listed: Any) -> Iterator[Sender]:
    for each in _objects(listed):
        if not _is_integer(number := each.get("generator")) or not 0 <= number < _MOST:
            continue
        pod, node = _any_text(each.get("pod")), _any_text(each.get("node"))
        # On this machine, where several may share a process.
        here = [f"{name} {each[name]}" for name in ("process", "processor") if _is_integer(each.get(name))]
        place = " on ".join(here) + (", not pinned" if here and "not_pinned" in each else "") or None
        process = each["process"] if _is_integer(each.get("process")) and abs(each["process"]) < _MOST else None
        clock = [value if _is_integer(value) and abs(value) < 1 << 62 else None for value in map(each.get, _CLOCK)]
        in_pod = pod and node
        yield Sender(number, None if in_pod else process, f"{pod} on {node}" if in_pod else place, *clock)


def _pods(pods: Any) -> tuple[tuple[str, int], ...]:
    names = [_text(pod, "pod") for pod in _objects(pods)]
    return tuple(sorted(Counter(name.partition("/")[0] for name in names if name).items()))


def _images(pods: Any) -> tuple[str, ...]:
    found = {
        f"{container}: {image}"
        for images in (_at(pod, "images") for pod in _objects(pods))
        if isinstance(images, dict)
        for container in images
        if (image := _text(images, container)) is not None
    }
    return tuple(sorted(found))


def _objects(listed: Any) -> list[dict[str, Any]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _at(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _text(content: Any, *keys: str) -> str | None:
    value = _at(content, *keys)
    return value if isinstance(value, str) and len(value) < 1000 else None


def _number(content: Any, *keys: str, most: float = 1e15) -> float | None:
    value = _at(content, *keys)
    is_number = _is_integer(value) or isinstance(value, float)
    return float(value) if is_number and 0 <= value < most else None


def _is_integer(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _any_text(value: Any) -> str | None:
    """A text of any length as tables can hold it, without lone surrogates."""
    return _encodable(value) if isinstance(value, str) else None


@dataclass(frozen=True)
class Failure:
    """The content of a failure record. `failed_at` is UTC; None where the record does not say."""

    failed_at: datetime | None
    phase: str | None
    error: str
    evidence: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """In which phase and why, in one line."""
        where = f"{PHASES.get(self.phase, self.phase)}: " if self.phase else ""
        return where + (_line(self.error) or "no reason recorded")

    @property
    def evidence_lines(self) -> list[str]:
        """The first pieces of evidence, one line each."""
        return [_line(text) for text in self.evidence[:_MOST_EVIDENCE]]

    @property
    def full_text(self) -> str:
        """Error and evidence in full, cut where very long; empty when `reason` and `evidence_lines` are all of it."""
        parts = [text.strip() for text in (self.error, *self.evidence)]
        if parts == [_line(self.error), *self.evidence_lines]:
            return ""
        found = "\n".join(filter(None, parts))
        more = len(found) - _LONGEST_TEXT
        return found if more <= 0 else f"{found[:_LONGEST_TEXT]}… and {more:,} more characters"


def _line(text: str) -> str:
    """The first line of a text that is not blank, cut where it is very long."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"


def record_failure(
    cell: Cell,
    run: int,
    error: str,
    evidence: Sequence[str],
    *,
    about: Mapping[str, Any],
    logs: Path,
    clean: Callable[[str], str] = str,
) -> Path:
    """Write the next failure record of a run, with its texts as `clean` returns them; returns its path.

    `about` has more facts about the attempt (``started``, ``phase``); the last lines of every log in the folder `logs`
    are kept. Raises LoadstoneError when the archive can't be written.
    """
    error = clean(error)
    found = sorted(logs.glob("*.log"))[:_MOST_LOGS]
    content = {
        "run": run,
        **about,
        "failed": datetime.now().astimezone().isoformat(),
        "error": error,
        "evidence": list(map(clean, evidence)),
        "logs": {log.name: clean(tail(log, _LOG_LINES)) for log in found},
        "loadstone": __version__,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_1min": os.getloadavg()[0],
    }
    nth = next_failure_number(cell, run)
    try:
        while not write_new(cell.failure(run, nth), (json.dumps({"nth": nth} | content, indent=2) + "\n").encode()):
            nth += 1
    except OSError as why:
        raise LoadstoneError(f"{cell.failure(run, nth)} cannot be written: {why}; the failure was: {error}") from None
    return cell.failure(run, nth)


def next_failure_number(cell: Cell, run: int) -> int:
    """The number of the run's next failure record."""
    nth = 1
    while os.path.lexists(cell.failure(run, nth)):
        nth += 1
    return nth


def read_failure(path: Path) -> Failure | str:
    """One failure record, or what is wrong with it, as a phrase to follow its name."""
    try:
        if not path.is_file():  # a named pipe would block for ever
            return "is not a regular file"
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST_FAILURE))
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(content, dict) or not isinstance(content.get("error"), str):
        return "does not say which error it is about"
    evidence = content.get("evidence")
    return Failure(
        _instant(content.get("failed")),
        _encodable(content["phase"]) if content.get("phase") else None,
        _encodable(content["error"]),
        tuple(map(_encodable, evidence)) if isinstance(evidence, list) else (),
    )


def _encodable(value: object) -> str:
    """A value as text that can be encoded: JSON can contain lone surrogates."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _instant(value: object) -> datetime | None:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        return instant.astimezone(UTC) if instant is not None and instant.tzinfo else None
    except (ValueError, OverflowError):
        return None
