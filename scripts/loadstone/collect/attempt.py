"""Attempts the runs of a sweep: failures are recorded and retried at the end; too many in a row stop the sweep.

Only a `RunFailedError` is a failed run. Its job succeeds, so that the next run starts. Any error that would also stop
the next run ends the job. The progress page is written between the phases of a run, never while requests are sent, and
its errors never fail the run. While a run waits for another command, the page is rewritten regularly, so that a page
that is no longer rewritten means that the command has ended.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, Cell, encode, metadata, plan, progress, run_records
from loadstone.archive.locks import WaitLine
from loadstone.archive.progress import REWRITTEN_S, Journal, Progress, Run
from loadstone.archive.stages import load_text
from loadstone.collect.run import collect_run
from loadstone.collect.sweep import versions
from loadstone.collect.targets.base import RunFailedError
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from loadstone.text import times

_SHOWN = 50

Log = Callable[[str], None]
Show = Callable[[Progress], None]


class GivenUpError(LoadstoneError):
    """Too many runs failed one after another (``sweep.give_up_after``); `why` says only that."""

    def __init__(self, why: str, text: str) -> None:
        super().__init__(text)
        self.why = why


@dataclass(frozen=True)
class Attempts:
    """Attempts runs of the archive `root` on the configured target of this host.

    `limits` are `retries`, how often runs without a result are retried at the end, and `give_up_after`, how many
    failures in a row stop the sweep; `only` selects the cells whose missing runs are tried. `journal` is the journal's
    path; `show` is called with every change.
    """

    root: Path
    target: Mapping[str, Any]
    host: str
    limits: Mapping[str, int]
    journal: str
    show: Show
    log: Log
    script: Mapping[str, Any] | None = None
    only: plan.Selection = plan.ALL

    @property
    def _journal(self) -> Journal:
        return Journal(Path(self.journal))

    def try_run(
        self, cell: Cell, run: int, logs: Path, *, retries: int | None = None, again: frozenset[Run] = frozenset()
    ) -> bool:
        """Collect one run, or record in the archive why that failed; returns whether it succeeded.

        `again` are the runs, including this one, that are being retried; `retries` is how many attempts are left.
        Raises GivenUpError when too many runs have failed, and any LoadstoneError of `collect_run` that would stop the
        next run too.
        """
        self._check_budget()
        retries = self.limits["retries"] if retries is None else retries
        state = progress.current_progress(cell.campaign, self._journal, retries, again, self.only)
        about: dict[str, Any] = {}

        def log(text: str) -> None:
            self._log(text, state)

        # A run may wait for hours; meanwhile the page must show that this command is still running.
        shown_s = time.monotonic()

        def while_waiting() -> None:
            nonlocal shown_s
            if time.monotonic() - shown_s >= REWRITTEN_S:
                shown_s = time.monotonic()
                self.show(state)

        def on_phase(phase: str) -> None:
            state.wait = ""
            if phase == "target":
                started = self._journal.tried(cell, run, run_records.next_failure_number(cell, run))
                about["started"] = started.at.isoformat()
                state.start(started)
                log(state.line())
            about["phase"] = phase
            state.phase = phase
            self.show(state)

        try:
            collect_run(
                cell,
                run,
                self.target,
                host=self.host,
                logs=logs,
                log=log,
                script=self.script,
                on_phase=on_phase,
                while_waiting=while_waiting,
            )
        except RunFailedError as error:
            with suppress(LoadstoneError):
                about["tools"] = versions({"sweep": {"variants": [cell.variant_dir]}, "target": self.target})
            record = run_records.record_failure(
                cell, run, str(error), error.evidence, about=about, logs=logs, clean=redact.text
            )
            state.fail(record)
            log(f"run {run} of {cell} failed ({run_records.PHASES[about['phase']]}): {error}")
            self.show(state)
            self._check_budget()
            return False
        except LoadstoneError as error:
            self._journal.log(redact.text(f"error: {error}"))
            raise
        state.succeed()
        self.show(state)
        return True

    def retry(self, campaign: Campaign, logs: Path) -> None:
        """Retry runs without a result, in the plan's order. Raises LoadstoneError listing those still without one."""
        stopped, left = "", 0
        try:
            for nth in range(1, self.limits["retries"] + 1):
                missing_runs = plan.missing(archive.scan_campaign(campaign), self.only)
                runs = [(planned.cell.rate, planned.cell.variant_dir, planned.run) for planned in missing_runs]
                for number, planned in enumerate(missing_runs):
                    left = len(missing_runs) - number - 1
                    folder = logs / planned.cell.rate / encode(planned.cell.variant_dir) / f"{planned.run}.{nth}"
                    rest = frozenset(runs[number:])
                    self.try_run(planned.cell, planned.run, folder, retries=self.limits["retries"] - nth, again=rest)
        except GivenUpError as error:
            if left:
                stopped = f"\n{left} of them {'was' if left == 1 else 'were'} not retried: {error.why}"
        if missing := missing_text(campaign, self.only):
            self._journal.log(f"error: {missing}{stopped}")
            raise LoadstoneError(missing + stopped)

    def _log(self, text: str, state: Progress) -> None:
        shown = redact.text(text)
        self.log(shown)
        if isinstance(text, WaitLine):  # soon outdated, so not in the journal
            state.wait = redact.text(text.reason)
            self.show(state)
            return
        self._journal.log(shown)
        state.log_lines.append((datetime.now().astimezone(), shown))

    def _check_budget(self) -> None:
        failed = progress.failed_in_a_row(self._journal.now(), self.root)
        if len(failed) < self.limits["give_up_after"]:
            return
        lines = [f"  {_run(each.cell(self.root), each.run)}: {_reason(record)}" for each, record in failed]
        shown = "\n".join(lines[-self.limits["give_up_after"] :])
        why = f"{len(failed)} consecutive runs failed, so the sweep stops here (sweep.give_up_after)"
        text = (
            f"{why}:\n{shown}\n"
            "Collected results are kept. Fix the cause; then `snakemake --cores all` retries these runs and continues. "
            "If the fix changes what `target` declares, open a new campaign instead. "
            "`snakemake --cores all report` reports the results so far"
        )
        self._journal.log(f"error: {text}")
        raise GivenUpError(why, text)


def missing_text(campaign: Campaign, only: plan.Selection = plan.ALL) -> str:
    """The missing runs of a campaign, why they are missing, and what to do; empty when none are."""
    listing = archive.scan_campaign(campaign)
    records = {cell.cell: cell.failures() for cell in listing.cells}
    missing_runs = plan.missing(listing, only)
    if not missing_runs:
        return ""
    lines = []
    for planned in missing_runs[:_SHOWN]:
        failed = records[planned.cell].get(planned.run, [])
        why = f"failed {times(len(failed))}; {_reason(planned.cell.path / failed[-1].name)}" if failed else "not tried"
        lines.append(f"  {_run(planned.cell, planned.run)}: {why}")
    if len(missing_runs) > _SHOWN:
        lines.append(f"  and {len(missing_runs) - _SHOWN} more")
    return (
        f"{campaign}: {len(missing_runs)} of {plan.planned_runs(listing)} planned runs have no result:\n"
        + "\n".join(lines)
        + "\nCollected results are kept. `snakemake --cores all` retries these runs; `snakemake --cores all report` "
        "reports the results so far.\nEach failed attempt is recorded next to the results (<run>.failure.<n>.json). To "
        f"give up the rest: {campaign.give_up_command}"
    )


def _run(cell: Cell, run: int) -> str:
    return f"run {run} of {cell.variant_dir} at {load_text(cell.rate, metadata.read_cell(cell).load_model)}"


def _reason(record: Path) -> str:
    found = run_records.read_failure(record)
    return f"{record.name} {found}" if isinstance(found, str) else found.reason
