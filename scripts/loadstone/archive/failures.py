"""Tries that gave no result: ``<run>.failure.<n>.json`` beside the run's files, when, in which phase and why.

Such a record is part of the archive: written once, never changed. It is no run's result and in no statistic.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.archive import Cell
from loadstone.archive.durable import write_new
from loadstone.errors import LoadstoneError
from loadstone.process import tail

_LARGEST = 16 << 20
_LOG_LINES = 40
_MOST_LOGS = 50

# What a run does, in this order, in words; ``warmup`` and ``test`` are the phases of the tables.
PHASES = {
    "waiting": "waiting until nobody else attacks",
    "target": "the target comes up",
    "warmup": "warm-up",
    "test": "attack",
    "results": "target down, results being encoded",
}


@dataclass(frozen=True)
class Failure:
    """What one record says. `failed_at` is UTC; None where the record does not say."""

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
    def told(self) -> list[str]:
        """The first pieces of evidence, one line each."""
        return [_line(text) for text in self.evidence[:_TOLD]]

    @property
    def whole(self) -> str:
        """Error and evidence in all their lines, cut where they are very long; empty where `reason`, `told` say all."""
        parts = [text.strip() for text in (self.error, *self.evidence)]
        if parts == [_line(self.error), *self.told]:
            return ""
        found = "\n".join(filter(None, parts))
        more = len(found) - _LONGEST_WHOLE
        return found if more <= 0 else f"{found[:_LONGEST_WHOLE]}… and {more:,} more characters"


_LONGEST_REASON = 400
_LONGEST_WHOLE = 4000
_TOLD = 3


def _line(text: str) -> str:
    """The first line of a text that says anything, cut where it is very long."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"


def record(cell: Cell, run: int, error: str, evidence: Sequence[str], *, about: Mapping[str, Any], logs: Path) -> Path:
    """Write the next record of a run; returns its path.

    `about` says more of the try (``started``, ``phase``); of every log in the folder `logs` the last lines are kept.
    Raises LoadstoneError when the archive can't be written.
    """
    found = sorted(logs.glob("*.log"))[:_MOST_LOGS]
    content = {
        "run": run,
        **about,
        "failed": datetime.now().astimezone().isoformat(),
        "error": error,
        "evidence": list(evidence),
        "logs": {log.name: tail(log, _LOG_LINES) for log in found},
        "loadstone": __version__,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_1min": os.getloadavg()[0],
    }
    nth = next_number(cell, run)
    try:
        while not write_new(cell.failure(run, nth), (json.dumps({"nth": nth} | content, indent=2) + "\n").encode()):
            nth += 1
    except OSError as why:
        raise LoadstoneError(f"{cell.failure(run, nth)} cannot be written: {why}; it was to say: {error}") from None
    return cell.failure(run, nth)


def times(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def next_number(cell: Cell, run: int) -> int:
    """The number that the record of the run's next failed try will have."""
    nth = 1
    while os.path.lexists(cell.failure(run, nth)):
        nth += 1
    return nth


def read(path: Path) -> Failure | str:
    """One record, or what is wrong with it in words that stand behind its name."""
    try:
        if not path.is_file():  # a named pipe would block for ever
            return "is no regular file"
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST))
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(content, dict) or not isinstance(content.get("error"), str):
        return "does not say which error it is about"
    evidence = content.get("evidence")
    return Failure(
        _instant(content.get("failed")),
        _text(content["phase"]) if content.get("phase") else None,
        _text(content["error"]),
        tuple(map(_text, evidence)) if isinstance(evidence, list) else (),
    )


def _text(value: object) -> str:
    """A value as text that can be encoded: JSON may hold lone surrogates."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _instant(value: object) -> datetime | None:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        return instant.astimezone(UTC) if instant is not None and instant.tzinfo else None
    except (ValueError, OverflowError):
        return None
