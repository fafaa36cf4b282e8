"""The progress of a sweep: which runs of a campaign have a result, which failed, and how long the rest will take.

The journal has a JSON object per line: when commands began and ended, and which runs they tried. Whether a try
succeeded is not in it: only the archive shows that. A line is appended by one write, so a job killed at any moment
leaves at most one line that cannot be read, which is skipped.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, CampaignKey, Cell, RawFile, metadata, plan
from loadstone.archive.durable import replace
from loadstone.archive.stages import load_text
from loadstone.errors import LoadstoneError

_LONGEST_TEXT = 4000
_IN_SECONDS, _IN_MINUTES = 90, 90  # below these numbers, a remaining time is shown in that unit
REWRITTEN_S = 20.0  # how often the page is rewritten while a run waits for another command
_FIRST_GUESS_S = 1.0  # a run's time besides its attacks, before any was measured

Place = tuple[str, str]  # rate and variant of a cell, as its folders are named
Run = tuple[str, str, int]  # these, and the run's number


@dataclass(frozen=True)
class Try:
    """One start of a run. If it fails, its record in the archive has the number `nth`."""

    at: datetime
    campaign: CampaignKey
    rate: str
    variant_dir: str
    run: int
    nth: int

    @property
    def planned_run(self) -> Run:
        return self.rate, self.variant_dir, self.run

    def cell(self, root: Path) -> Cell:
        """Its cell in the archive `root`."""
        return Cell(Campaign(root, *self.campaign), self.rate, self.variant_dir)


@dataclass
class CommandRecord:
    """One invocation of the workflow. `ended` says how it ended; None while it runs, or when it was killed."""

    began: datetime
    root: Path | None = None
    reports: Path | None = None
    missing: dict[CampaignKey, int] = field(default_factory=dict)  # runs missing when it began, of its campaigns
    tries: list[Try] = field(default_factory=list)
    log_lines: list[tuple[datetime, str]] = field(default_factory=list)
    ended: str | None = None
    last: datetime | None = None  # time of its last event


class Journal:
    """The journal in a file. Writing raises LoadstoneError when the file can't be written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, root: Path, reports: Path, missing: Mapping[Campaign, int]) -> None:
        """A command begins to collect these campaigns, each with its number of missing runs.

        Older commands are removed, except for their tries of these campaigns.
        """
        lines = []
        keys = {campaign.key: count for campaign, count in missing.items()}
        for command in self.commands():
            if any(each.campaign in keys for each in command.tries):
                lines += [{"event": "begin", "at": command.began.isoformat()}, *map(_try_event, command.tries)]
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
        started = Try(datetime.now().astimezone(), cell.campaign.key, cell.rate, cell.variant_dir, run, nth)
        self._append(_try_event(started))
        return started

    def log(self, text: str) -> None:
        """A message was shown to the user."""
        self._append({"event": "said", "at": _now(), "text": text[:_LONGEST_TEXT]})

    def commands(self) -> list[CommandRecord]:
        """All commands, oldest first. A run that was requested by name, outside of them, makes one too."""
        found: list[CommandRecord] = []
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        for line in lines:
            try:
                event = json.loads(line)
                _add_event(found, event, datetime.fromisoformat(event["at"]))
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def now(self) -> CommandRecord | None:
        """The command that is running, or was running when it was killed."""
        return _running(self.commands())

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


def _running(commands: Sequence[CommandRecord]) -> CommandRecord | None:
    return commands[-1] if commands and commands[-1].ended is None else None


def _add_event(found: list[CommandRecord], event: Mapping[str, Any], at: datetime) -> None:
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
        command.log_lines.append((at, event["text"]))
    elif kind == "end":
        command.ended = event["how"]


def _try_event(each: Try) -> dict[str, Any]:
    where = {"campaign": each.campaign, "rate": each.rate, "variant": each.variant_dir, "run": each.run}
    return {"event": "try", "at": each.at.isoformat(), **where, "nth": each.nth}


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _now() -> str:
    return datetime.now().astimezone().isoformat()


@dataclass(frozen=True)
class CellPlan:
    """One cell's part of the plan. `planned_s` is the length of a run's stages that time ends."""

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
    """The state of a campaign, kept up to date by the job that collects its runs.

    `failed` has the failure records of every run, including those that were collected in the end; `tried` are the
    runs that the current command has tried, `again` those that it is about to retry, and `retries` how often more it
    will do so; it collects no other cells than those of `only`. `now` is the run under way.
    """

    campaign: Campaign
    command: CommandRecord | None
    cells: list[CellPlan]
    collected: set[Run]
    failed: dict[Run, list[RawFile]]
    measured_s: dict[Run, float]
    retries: int = 0
    again: frozenset[Run] = frozenset()
    only: plan.Selection = plan.ALL
    tried: set[Run] = field(default_factory=set)
    now: Run | None = None
    since: datetime | None = None  # when `now` was started
    phase: str = ""
    wait: str = ""  # for whom it waits
    declared: list[str] = field(default_factory=list)  # folders of variants, in the sweep's order
    log_lines: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(len(planned.positions) for planned in self.cells)

    @property
    def load_model(self) -> str:
        """The load model of the campaign: a sweep has one."""
        return self.cells[0].load_model if self.cells else "open"

    @property
    def missing(self) -> list[Run]:
        """Planned runs without a result."""
        every = ((*planned.place, run) for planned in self.cells for run in planned.runs)
        return [run for run in every if run not in self.collected]

    @property
    def unsuccessful(self) -> list[Run]:
        """Runs that were tried, in whatever command, and have no result, without the one under way."""
        return [run for run in self.missing if run in self.failed and run != self.now]

    def start(self, started: Try) -> None:
        """A run is started."""
        self.now, self.since = started.planned_run, started.at
        self.tried.add(self.now)

    def succeed(self) -> None:
        """The run under way has its result."""
        if self.now is not None:
            self.collected.add(self.now)
        self._end_run()

    def fail(self, record: Path) -> None:
        """The run under way has failed; `record` is its failure record."""
        if self.now is not None and (named := archive.parse_name(record.name)) is not None:
            self.failed.setdefault(self.now, []).append(named)
        self._end_run()

    def _end_run(self) -> None:
        self.now = self.since = None
        self.phase = self.wait = ""

    def left_s(self) -> float:
        """Estimated seconds for the runs still to be tried."""
        per_cell = self._estimates()
        seconds = 0.0
        for rate, variant, run in self.missing:
            if (rate, variant, run) == self.now:
                passed_s = (datetime.now().astimezone() - self.since).total_seconds() if self.since else 0.0
                seconds += max(0.0, per_cell[rate, variant] - passed_s)
            elif self.only.has(rate, variant) and ((rate, variant, run) not in self.tried - self.again or self.retries):
                seconds += per_cell[rate, variant]
        return seconds

    def present_s(self) -> float:
        """Estimated seconds for the run under way, from its start."""
        return self._estimates()[self.now[:2]] if self.now else 0.0

    def _estimates(self) -> dict[Place, float]:
        """Seconds from the start of a run to the start of the next, by cell.

        The mean of what was measured in the cell; else its planned stages plus the mean of what other runs took besides
        theirs, if possible runs of the same variant.
        """
        planned_s = {planned.place: planned.planned_s for planned in self.cells}
        by_cell: defaultdict[Place, list[float]] = defaultdict(list)
        besides: defaultdict[str | None, list[float]] = defaultdict(list)  # by variant, and of all
        for (rate, variant, _), seconds in self.measured_s.items():
            by_cell[rate, variant].append(seconds)
            extra_s = seconds - planned_s.get((rate, variant), seconds)
            besides[variant].append(extra_s)
            besides[None].append(extra_s)
        found = {}
        for (rate, variant), seconds in planned_s.items():
            extra = besides[variant] or besides[None] or [_FIRST_GUESS_S]
            found[rate, variant] = fmean(by_cell[rate, variant] or [max(0.0, seconds + fmean(extra))])
        return found

    def line(self) -> str:
        """The run under way for the terminal: ``[7 of 40] envoy at 300/s, run 2; about 12 min left, until 17:45``."""
        rate, variant, run = self.now or ("", "", 0)
        failed_now = [run for run in self.unsuccessful if run in self.tried]
        where = f"{len(self.collected) + len(failed_now) + 1} of {self.total}"
        if self.again:
            where = f"again, {len(self.again)} to go"
        left_s = self.left_s()
        failed = f"; {len(self.unsuccessful)} failed so far" if self.unsuccessful else ""
        left = f"about {duration_text(left_s)} left, until {until_text(left_s)}"
        return f"[{where}] {variant} at {load_text(rate, self.load_model)}, run {run}; {left}{failed}"


def current_progress(
    campaign: Campaign,
    journal: Journal,
    retries: int = 0,
    again: frozenset[Run] = frozenset(),
    only: plan.Selection = plan.ALL,
) -> Progress:
    """The present state of a campaign; `retries`, `again` and `only` as in `Progress`."""
    cells: list[CellPlan] = []
    described = []
    collected: set[Run] = set()
    failed: dict[Run, list[RawFile]] = {}
    for found in archive.scan_campaign(campaign).cells:
        about = metadata.read_cell(found.cell)
        described.append((found.cell.variant_dir, float(found.cell.rate), about))
        planned = CellPlan(found.cell, about.positions[: about.runs or 0], about.load_s, about.load_model)
        cells.append(planned)
        collected |= {(*planned.place, run) for run in found.collected() if run in planned.runs}
        failed |= {(*planned.place, run): files for run, files in found.failures().items()}
    commands = journal.commands()
    command = _running(commands)
    measured = dict(_measured(campaign, commands, collected, failed))
    progress = Progress(campaign, command, cells, collected, failed, measured, retries, again, only)
    progress.declared = plan.variants_of_cells(described)
    if command is not None:
        progress.log_lines = list(command.log_lines)
        progress.tried = {each.planned_run for each in command.tries if each.campaign == campaign.key}
    return progress


def failed_in_a_row(command: CommandRecord | None, root: Path) -> list[tuple[Try, Path]]:
    """The tries of a command that failed since the last that succeeded, oldest first, each with its record.

    A try without a record or a result was killed and is not counted.
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
    """A remaining time for people: ``48 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < _IN_SECONDS:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < _IN_MINUTES else f"{minutes // 60} h {minutes % 60:02d} min"


def until_text(seconds: float, now: Callable[[], datetime] = datetime.now) -> str:
    """The time of day in `seconds` from now, with the date unless it is today: ``17:45``."""
    then, today = now() + timedelta(seconds=seconds), now()
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%H:%M on %d %B}"


def _measured(
    campaign: Campaign, commands: Sequence[CommandRecord], collected: set[Run], failed: Mapping[Run, Sequence[RawFile]]
) -> Iterator[tuple[Run, float]]:
    """Collected run -> seconds from its start to that of the next run of the same command."""
    for command in commands:
        for each, following in pairwise(command.tries):
            run = each.planned_run
            has_failed = each.nth in {archive.failure_number(record.name) for record in failed.get(run, ())}
            if each.campaign == campaign.key and run in collected and not has_failed:
                yield run, (following.at - each.at).total_seconds()
