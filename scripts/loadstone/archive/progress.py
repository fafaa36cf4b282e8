"""Where a sweep stands: which runs of a campaign have a result, which failed, and how long the rest will take.

The journal has a JSON object per line: when commands began and ended, and which runs they tried. Whether a try
succeeded is not in it: the archive alone says that. A line is appended by one write, so a job killed at any moment
leaves at most one line that cannot be read, which is skipped.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, Cell, RawFile, metadata, plan
from loadstone.archive.durable import replace
from loadstone.archive.metadata import Metadata
from loadstone.archive.stages import load_text
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


_IN_SECONDS, _IN_MINUTES = 90, 90  # below which a time left is said in that unit
REWRITTEN_S = 20.0  # how often what is shown is shown again while others keep a run waiting
_FIRST_GUESS_S = 1.0  # around a run's attacks, before any was measured

Place = tuple[str, str]  # rate and variant of a cell, as its folders are named
Run = tuple[str, str, int]


@dataclass(frozen=True)
class CellPlan:
    """One cell's part of the plan. `planned_s` is how long a run's stages take, as far as time ends them."""

    cell: Cell
    positions: Sequence[int]
    planned_s: float
    load_model: str = "open"

    @property
    def place(self) -> Place:
        return self.cell.rate, self.cell.variant_dir

    @property
    def runs(self) -> range:
        return range(1, len(self.positions) + 1)


@dataclass
class Progress:
    """One look at a campaign, kept true by the job that collects its runs.

    `failed` holds the failure records of every run, also of one that was collected in the end; `tried` the runs that
    the present command has tried, `again` those that it is about to try again and `retries` how often more it will do
    so; `now` is the run that is under way.
    """

    campaign: Campaign
    command: CommandRecord | None
    cells: list[CellPlan]
    collected: set[Run]
    failed: dict[Run, list[RawFile]]
    measured_s: dict[Run, float]
    retries: int = 0
    again: frozenset[Run] = frozenset()
    tried: set[Run] = field(default_factory=set)
    now: Run | None = None
    since: datetime | None = None  # when `now` was started
    phase: str = ""
    wait: str = ""  # for whom, while another holds what is needed
    declared: list[str] = field(default_factory=list)  # folders of variants, as the sweep has them
    said: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(len(planned.positions) for planned in self.cells)

    @property
    def load_model(self) -> str:
        """That of the campaign: a sweep has one."""
        return self.cells[0].load_model if self.cells else "open"

    @property
    def missing(self) -> list[Run]:
        """Planned runs without a result."""
        every = ((*planned.place, run) for planned in self.cells for run in planned.runs)
        return [run for run in every if run not in self.collected]

    @property
    def unsuccessful(self) -> list[Run]:
        """Runs that were tried, in whatever command, and have no result; the present one is not among them."""
        return [run for run in self.missing if run in self.failed and run != self.now]

    def start(self, started: Try) -> None:
        """A run is started; `phase` says what it does."""
        self.now = started.rate, started.variant_dir, started.run
        self.since = started.at
        self.tried.add(self.now)

    def succeed(self) -> None:
        """The present run has its result."""
        if self.now is not None:
            self.collected.add(self.now)
        self._rest()

    def fail(self, record: Path) -> None:
        """The present run has none, as `record` says."""
        if self.now is not None and (named := archive.parse_name(record.name)) is not None:
            self.failed.setdefault(self.now, []).append(named)
        self._rest()

    def _rest(self) -> None:
        self.now = self.since = None
        self.phase = self.wait = ""

    def left_s(self) -> float:
        """Seconds that the runs still to be tried will take, as long as those did that are done."""
        per_cell = self._estimates()
        seconds = 0.0
        for rate, variant, run in self.missing:
            if (rate, variant, run) == self.now:
                passed_s = (datetime.now().astimezone() - self.since).total_seconds() if self.since else 0.0
                seconds += max(0.0, per_cell[rate, variant] - passed_s)
            elif (rate, variant, run) not in self.tried - self.again or self.retries:
                seconds += per_cell[rate, variant]
        return seconds

    def present_s(self) -> float:
        """Seconds that the present run will take in all, as far as it can be told."""
        return self._estimates()[self.now[:2]] if self.now else 0.0

    def _estimates(self) -> dict[Place, float]:
        """Seconds from a run's start to the next one's, by cell.

        What was measured there, else its own attacks and what other runs took besides theirs, those of the same
        variant first.
        """
        planned_s = {planned.place: planned.planned_s for planned in self.cells}
        by_cell: dict[Place, list[float]] = {}
        besides: dict[str | None, list[float]] = {}
        for (rate, variant, _), seconds in self.measured_s.items():
            by_cell.setdefault((rate, variant), []).append(seconds)
            for of in (variant, None):
                besides.setdefault(of, []).append(seconds - planned_s.get((rate, variant), seconds))
        found = {}
        for (rate, variant), seconds in planned_s.items():
            extra = besides.get(variant) or besides.get(None) or [_FIRST_GUESS_S]
            found[rate, variant] = fmean(by_cell.get((rate, variant)) or [max(0.0, seconds + fmean(extra))])
        return found

    def line(self) -> str:
        """The present run for the terminal: ``[7 of 40] envoy at 300/s, run 2; about 12 min left, until 17:45``."""
        rate, variant, run = self.now or ("", "", 0)
        failed_now = [run for run in self.unsuccessful if run in self.tried]
        where = f"{len(self.collected) + len(failed_now) + 1} of {self.total}"
        if self.again:
            where = f"again, {len(self.again)} to go"
        left_s = self.left_s()
        failed = f"; {len(self.unsuccessful)} failed so far" if self.unsuccessful else ""
        left = f"about {duration_text(left_s)} left, until {until_text(left_s)}"
        return f"[{where}] {variant} at {load_text(rate, self.load_model)}, run {run}; {left}{failed}"


def look(campaign: Campaign, journal: Journal, retries: int = 0, again: frozenset[Run] = frozenset()) -> Progress:
    """Where a campaign stands now; `retries` and `again` as in `Progress`."""
    listing = archive.scan_campaign(campaign)
    cells: list[CellPlan] = []
    plans: list[tuple[str, float, Metadata]] = []
    collected: set[Run] = set()
    failed: dict[Run, list[RawFile]] = {}
    for found in listing.cells:
        described = metadata.read(found.cell.path / archive.METADATA)
        positions = described.positions[: described.runs or 0]
        cells.append(CellPlan(found.cell, positions, described.load_s, described.load_model))
        plans.append((found.cell.variant_dir, float(found.cell.rate), described))
        place = found.cell.rate, found.cell.variant_dir
        collected |= {(*place, run) for run in found.collected() if run <= len(positions)}
        failed |= {(*place, run): files for run, files in found.failures().items()}
    commands = journal.commands()
    command = commands[-1] if commands and commands[-1].ended is None else None
    measured = dict(_measured(campaign, commands, collected, failed))
    progress = Progress(campaign, command, cells, collected, failed, measured, retries, again)
    progress.declared = plan.variants_of_cells(plans)
    if command is not None:
        mine = key_of(campaign)
        progress.said = list(command.said)
        progress.tried = {(each.rate, each.variant_dir, each.run) for each in command.tries if each.campaign == mine}
    return progress


def failed_in_a_row(command: CommandRecord | None, root: Path) -> list[tuple[Try, Path]]:
    """The tries of a command that failed since the last that succeeded, oldest first, each with its record.

    A try that left neither a record nor a result was killed: it counts as neither.
    """
    found: list[tuple[Try, Path]] = []
    for each in reversed(command.tries if command else []):
        cell = each.cell(root)
        if (record := cell.failure(each.run, each.nth)).exists():
            found.append((each, record))
        elif each.run in archive.scan_cell(cell).collected():
            break
    return found[::-1]


def duration_text(seconds: float) -> str:
    """A time left for people: ``48 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < _IN_SECONDS:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < _IN_MINUTES else f"{minutes // 60} h {minutes % 60:02d} min"


def until_text(seconds: float, now: Callable[[], datetime] = datetime.now) -> str:
    """The time of day after so many seconds, with the date when it is another day: ``17:45``."""
    then, today = now() + timedelta(seconds=seconds), now()
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%H:%M on %d %B}"


def _measured(
    campaign: Campaign, commands: Sequence[CommandRecord], collected: set[Run], failed: Mapping[Run, Sequence[RawFile]]
) -> Iterator[tuple[Run, float]]:
    """Collected run -> seconds from its start to that of the next run of the same command."""
    mine = key_of(campaign)
    for command in commands:
        for each, following in pairwise(command.tries):
            run = each.rate, each.variant_dir, each.run
            if each.campaign != mine or run not in collected:
                continue
            if each.nth not in {archive.failure_number(record.name) for record in failed.get(run, ())}:
                yield run, (following.at - each.at).total_seconds()
