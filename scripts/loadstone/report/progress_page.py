"""``progress.html``: the state of the current sweep. It is written during the sweep: cheap, and errors stop no run."""

from collections.abc import Callable, Mapping, Set
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, Cell, run_records
from loadstone.archive.metadata import parse_duration
from loadstone.archive.progress import (
    REWRITTEN_S,
    CommandRecord,
    Journal,
    Progress,
    Run,
    current_progress,
    duration_text,
    until_text,
)
from loadstone.archive.run_records import Failure
from loadstone.archive.stages import load_text
from loadstone.config import redact
from loadstone.config.variants import Variants
from loadstone.report import site_layout
from loadstone.report.output import asset, run_map, write_page, write_text
from loadstone.text import counted, load_unit, rate_text, times

NAME = "progress.html"
_NO_SWEEP = "No sweep has been collected into this folder."
_NONE = "no-progress.html"  # the template of the page before the first sweep
REFRESH_S = 5
_ASSETS = ("site.css", "theme.js", "progress.js")
_SHOWN = 30  # failures, the last ones
_LINES = 12  # of the log
_MOST_MARKS = 4000  # runs beyond which cells hold numbers instead of one mark per run
_SLACK_S = 120.0  # the delay that is allowed on a busy machine before the page says that the sweep has stopped

# State of a run -> its mark and its name. The marks differ in shape, not in colour alone.
STATES = {"collected": "■", "failed": "✕", "now": "◉", "planned": "□"}

Log = Callable[[str], None]


class ProgressPage:
    """The page in a site's folder. If it can't be written, that is logged once, and the sweep goes on.

    `variants` are those of config/variants.yaml, `options` the configuration's ``report`` section.
    `ready_timeout` is the target's: while a target starts, the page may stay unchanged for that long.
    """

    def __init__(
        self,
        reports: Path,
        *,
        variants: Mapping[str, Any],
        options: Mapping[str, Any],
        log: Log,
        ready_timeout: str | None = None,
    ) -> None:
        self.path = reports / NAME
        self._variants = Variants(variants)
        self._options = options
        self._log = log
        self._ready_s = parse_duration(ready_timeout) or 30.0
        self._reasons: dict[Path, Failure | None] = {}
        self._broken = False

    def at(self, reports: Path) -> "ProgressPage":
        """The page with the same settings in another folder."""
        return ProgressPage(reports, variants=self._variants.declared, options=self._options, log=self._log)

    def show(self, progress: Progress, ended: str | None = None) -> None:
        """Write the page in one step; `ended` says how the command ended (None: it has not)."""
        if self._broken:
            return
        try:
            for name in _ASSETS:
                write_text(self.path.parent / "assets" / name, asset(name))
            write_page(self.path, NAME, self._context(progress, ended))
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not cost a run
            self._broken = True
            self._log(f"{self.path} cannot be written ({error}); the sweep continues without it")

    def _context(self, progress: Progress, ended: str | None) -> dict[str, Any]:
        now = datetime.now().astimezone()
        others = _others(progress)
        is_over = not progress.missing and (ended is not None or not others)
        state = "complete" if is_over else "under way" if ended is None else "stopped"
        is_drawn = progress.total <= _MOST_MARKS
        left_s = progress.left_s()
        part_s = REWRITTEN_S if progress.phase == "waiting" else progress.present_s() + self._ready_s
        due = now + timedelta(seconds=part_s + _SLACK_S)
        return {
            "site_title": str(self._options.get("title", "Load-test results")),
            "progress": progress,
            "state": state,
            "headline": _headline(progress, state, ended),
            "refresh_s": REFRESH_S if state == "under way" else None,
            "due_ms": int(due.timestamp() * 1000) if state == "under way" else None,
            "due": f"{due:%H:%M:%S}" if due.date() == now.date() else f"{due:%H:%M:%S on %d %B}",
            "written": f"{now:%H:%M:%S on %d %B %Y}",
            "navigation": site_layout.present_entries(self.path.parent),
            "now": self._present(progress),
            "left": f"about {duration_text(left_s)}, until {until_text(left_s)}" if state == "under way" else "",
            "others": others,
            "map": self._map(progress, is_drawn=is_drawn),
            "load_unit": load_unit([progress.load_model]),
            "states": STATES if is_drawn else {},
            "failed": self._failed(progress),
            "log_lines": [(at, redact.text(line)) for at, line in progress.log_lines[-_LINES:]],
        }

    def _label(self, progress: Progress, folder: str) -> str:
        app = progress.campaign.app
        name = self._variants.canonical(app, folder)
        (style,) = self._variants.styles(app, [name])
        return style.label if name == folder else f"{style.label} ({folder})"

    def _present(self, progress: Progress) -> str:
        if progress.now is None:
            return ""
        rate, variant, run = progress.now
        return f"{self._label(progress, variant)} at {_load(progress, rate)}, run {run}"

    def _failed(self, progress: Progress) -> list[dict[str, Any]]:
        """Runs that failed and have no result, with the reason of the last try; the latest first."""
        last = [(run, progress.failed[run][-1]) for run in progress.unsuccessful]
        last.sort(key=lambda each: each[1].mtime_ns or float("inf"), reverse=True)
        return [
            {
                "load": _load(progress, rate),
                "variant": self._label(progress, variant),
                "run": run,
                "times": times(len(progress.failed[rate, variant, run])),
                "why": self._reason(Cell(progress.campaign, rate, variant).path / file.name),
                "file": file.name,
                "key": f"{rate}/{variant}/{run}",
            }
            for (rate, variant, run), file in last[:_SHOWN]
        ]

    def _reason(self, record: Path) -> Failure | None:
        if record not in self._reasons:
            found = run_records.read_failure(record)
            self._reasons[record] = None if isinstance(found, str) else Failure(**redact.texts(vars(found)))
        return self._reasons[record]

    def _map(self, progress: Progress, *, is_drawn: bool) -> dict[str, Any]:
        app, runs = progress.campaign.app, {planned.place: planned.runs for planned in progress.cells}
        names = {folder: self._variants.canonical(app, folder) for _, folder in runs}
        order = [style.name for style in self._variants.styles(app, names.values(), progress.declared)]
        folders = sorted(names, key=lambda folder: (order.index(names[folder]), folder))
        unsuccessful = set(progress.unsuccessful)
        states = {
            (float(rate), folder): [(run, _state(progress, unsuccessful, (rate, folder, run))) for run in own]
            for (rate, folder), own in runs.items()
        }
        return run_map(states, {each: self._label(progress, each) for each in folders}, STATES, is_drawn=is_drawn)


def _load(progress: Progress, rate: str) -> str:
    number = rate_text(float(rate))
    return load_text(number, "closed") if progress.load_model == "closed" else f"{number} requests/s"


def is_of_a_sweep(reports: Path) -> bool:
    """Whether the folder has the page of a sweep."""
    try:
        return _NO_SWEEP not in (reports / NAME).read_text("utf-8", "replace")
    except OSError:
        return False


def write_placeholder(reports: Path, site_context: Mapping[str, Any]) -> None:
    """Write a page that says that there was no sweep, unless there was one: all other pages link to it."""
    if not is_of_a_sweep(reports) and not (reports / NAME).is_dir():
        write_page(reports / NAME, _NONE, {**site_context, "no_sweep": _NO_SWEEP})


def begun(journal: Journal, page: ProgressPage, root: Path) -> None:
    """Show the first campaign of a command that has begun to collect."""
    command = journal.now()
    if command is not None and (first := _campaign(command, root)) is not None:
        page.show(current_progress(first, journal))


def ended(journal: Journal, page: ProgressPage, how: str = "") -> None:
    """Show that the command under way has ended; without `how`, it was killed earlier."""
    command = journal.now()
    if command is None:
        return
    how = how or f"the command was killed after {command.last or command.began:%H:%M:%S on %d %B %Y}"
    if command.root is not None and command.reports is not None and (last := _campaign(command, command.root)):
        page.at(command.reports).show(current_progress(last, journal), how)
    journal.end(how)


def _campaign(command: CommandRecord, root: Path) -> Campaign | None:
    """The campaign that a command collected last; before its first run, the one that it will collect first."""
    keys = [each.campaign for each in command.tries[-1:]] or list(command.missing)
    found = [Campaign(root, *key) for key in keys]
    return min(found, key=lambda campaign: campaign.instant) if found else None


def _headline(progress: Progress, state: str, ended: str | None) -> str:
    if state == "complete":
        return f"All {counted(progress.total, 'planned run')} collected."
    missing = counted(len(progress.missing), "planned run")
    if state == "stopped":
        return f"Stopped: {ended or 'the command has ended'}. {missing} missing."
    if progress.wait:
        return f"Under way, but waiting: {progress.wait}."
    if progress.now is None:
        return f"Under way; {missing} missing."
    return f"Under way: {run_records.PHASES.get(progress.phase, progress.phase)}."


def _others(progress: Progress) -> list[tuple[str, int]]:
    """The other campaigns that the same command collects, with their missing runs when it began."""
    missing = progress.command.missing if progress.command else {}
    return [(" / ".join(key), count) for key, count in missing.items() if key != progress.campaign.key and count]


def _state(progress: Progress, unsuccessful: Set[Run], run: Run) -> str:
    if run == progress.now:
        return "now"
    if run in progress.collected:
        return "collected"
    return "failed" if run in unsuccessful else "planned"
