"""What happened in a folder's sweeps, one JSON object per line: when commands began and ended, which runs they tried.

Whether a try succeeded is not written here: the archive alone says that. A line is appended by one write, so that a
job killed at any moment leaves at most one that can't be read, which is skipped.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, Cell
from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError

Key = tuple[str, str, str]  # app, host and timestamp of a campaign, as its folders are named

_LONGEST_TEXT = 4000


@dataclass(frozen=True)
class Try:
    """One start of a run. If it fails, its record in the archive has the number `nth`."""

    at: datetime
    campaign: Key
    rate: str
    variant_dir: str
    run: int
    nth: int

    def cell(self, root: Path) -> Cell:
        """Its cell in the archive `root`."""
        return Cell(Campaign(root, *self.campaign), self.rate, self.variant_dir)


@dataclass
class CommandRecord:
    """One invocation of the workflow. `ended` says how it ended; None while it runs, or when it was killed."""

    began: datetime
    root: Path | None = None
    reports: Path | None = None
    missing: dict[Key, int] = field(default_factory=dict)  # campaigns it was to collect -> how many runs were missing
    tries: list[Try] = field(default_factory=list)
    said: list[tuple[datetime, str]] = field(default_factory=list)
    ended: str | None = None
    last: datetime | None = None  # when anything was written of it last


class Journal:
    """The journal in a file. Writing raises LoadstoneError when the file can't be written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, root: Path, reports: Path, missing: Mapping[Campaign, int]) -> None:
        """A command begins that collects these campaigns, in which so many runs are missing.

        Of older commands stays only what they tried of them.
        """
        lines = []
        keys = {key_of(campaign): count for campaign, count in missing.items()}
        for command in self.commands():
            if any(each.campaign in keys for each in command.tries):
                lines += [{"event": "begin", "at": command.began.isoformat()}, *map(_tried, command.tries)]
        campaigns = [[*key, count] for key, count in keys.items()]
        folders = {"archive": str(root), "reports": str(reports)}
        lines.append({"event": "begin", "at": _now()} | folders | {"lacking": campaigns})
        with self._errors():
            replace(self.path, b"".join(map(_line, lines)))

    def end(self, how: str) -> None:
        """The command has ended."""
        self._append({"event": "end", "at": _now(), "how": how})

    def tried(self, cell: Cell, run: int, nth: int) -> Try:
        """A run is started."""
        started = Try(datetime.now().astimezone(), key_of(cell.campaign), cell.rate, cell.variant_dir, run, nth)
        self._append(_tried(started))
        return started

    def said(self, text: str) -> None:
        """Something was said to the user."""
        self._append({"event": "said", "at": _now(), "text": text[:_LONGEST_TEXT]})

    def commands(self) -> list[CommandRecord]:
        """All of them, oldest first. What was tried outside any (a run asked for by its name) makes one too."""
        found: list[CommandRecord] = []
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        for line in lines:
            try:
                event = json.loads(line)
                _take(found, event, datetime.fromisoformat(event["at"]))
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def now(self) -> CommandRecord | None:
        """The command that is under way, or was when it was killed."""
        commands = self.commands()
        return commands[-1] if commands and commands[-1].ended is None else None

    def _append(self, event: Mapping[str, Any]) -> None:
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(descriptor, _line(event))
            finally:
                os.close(descriptor)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LoadstoneError(f"{self.path} cannot be written: {error.strerror or error}") from None


def key_of(campaign: Campaign) -> Key:
    """A campaign as the journal names it."""
    return campaign.app, campaign.host, campaign.timestamp


def _take(found: list[CommandRecord], event: Mapping[str, Any], at: datetime) -> None:
    kind = event["event"]
    if kind == "begin" or not found or found[-1].ended is not None:
        found.append(CommandRecord(at))
    command = found[-1]
    command.last = at
    if kind == "begin" and "archive" in event:
        command.root, command.reports = Path(event["archive"]), Path(event["reports"])
        command.missing = {(app, host, timestamp): count for app, host, timestamp, count in event["lacking"]}
    elif kind == "try":
        key = tuple(event["campaign"])
        command.tries.append(Try(at, key, event["rate"], event["variant"], event["run"], event["nth"]))
    elif kind == "said":
        command.said.append((at, event["text"]))
    elif kind == "end":
        command.ended = event["how"]


def _tried(each: Try) -> dict[str, Any]:
    where = {"campaign": each.campaign, "rate": each.rate, "variant": each.variant_dir, "run": each.run}
    return {"event": "try", "at": each.at.isoformat(), **where, "nth": each.nth}


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _now() -> str:
    return datetime.now().astimezone().isoformat()
