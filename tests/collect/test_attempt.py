"""Runs that fail are recorded and tried again, and too many in a row stop the sweep; against a real little server."""

import json
import re
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loadstone import archive
from loadstone.archive import Cell, plan
from loadstone.archive.locks import exclusive
from loadstone.archive.progress import Journal, Progress, current_progress
from loadstone.collect import attempt
from loadstone.collect.attempt import Attempts, GivenUpError
from loadstone.errors import LoadstoneError
from loadstone.tables import verify
from support.bench import Bench


class Sweep(Bench):
    """A `Bench` whose runs are tried as the workflow's jobs do it."""

    def __init__(self, folder: Path, *options: str, limits: dict[str, int] | None = None, **changes: Any) -> None:
        fast = {"duration": "200ms", "warmup": {"duration": "0s"}}
        super().__init__(folder, *options, **(fast | changes))
        self.limits = {"retries": 1, "give_up_after": 3} | (limits or {})
        self.journal = Journal(folder / "journal")
        self.shown: list[tuple[str, str]] = []
        self.begin()

    def begin(self) -> None:
        """Another invocation of the workflow."""
        self.journal.begin(self.campaign.root, self.folder / "reports", {self.campaign: 0})

    def attempts(self) -> Attempts:
        def show(progress: Progress) -> None:
            states = {True: "collected", False: "lacking"}
            self.shown.append((progress.phase, states[not progress.missing]))

        journal = str(self.journal.path)
        return Attempts(
            self.campaign.root,
            target=self.target,
            host="here",
            limits=self.limits,
            journal=journal,
            show=show,
            log=self.said.append,
        )

    def try_run(self, run: int = 1, cell: Cell | None = None) -> bool:
        """One job of the workflow."""
        return self.attempts().try_run(cell or self.cell, run, self.folder / f"logs/{run}")

    def records(self, run: int = 1) -> list[dict[str, Any]]:
        listing = archive.scan_campaign(self.campaign)
        files = listing.cells[0].failures().get(run, [])
        return [json.loads((self.cell.path / file.name).read_text()) for file in files]


@pytest.fixture
def swept(tmp_path: Path) -> Callable[..., Sweep]:
    return lambda *options, **changes: Sweep(tmp_path, *options, **changes)


def test_a_failed_run_is_recorded_and_the_next_one_goes_on(swept) -> None:
    it = swept("--fail-starts", "1")
    assert not it.try_run(1)
    assert it.try_run(2)
    (record,) = it.records(1)
    assert (record["run"], record["nth"], record["phase"]) == (1, 1, "target")
    assert "the process 'server' ended (exit code 1)" in record["error"]
    assert record["logs"] == {"server.log": "no licence today"}
    assert record["started"] < record["failed"]
    assert {"loadstone", "tools", "evidence"} <= set(record)
    assert it.records(2) == []
    listing = archive.scan_campaign(it.campaign)
    assert listing.cells[0].collected() == {2} and listing.cells[0].runs() == [2]
    assert listing.problems == []
    assert [planned.run for planned in plan.missing(listing)] == [1]


def test_records_are_added_and_never_changed(swept, monkeypatch: pytest.MonkeyPatch) -> None:
    it = swept("--fail-starts", "1,2")
    it.try_run(1)
    first = it.cell.failure(1, 1).read_bytes()
    before = archive.scan_campaign(it.campaign).digest()
    it.try_run(1)
    assert it.cell.failure(1, 1).read_bytes() == first
    assert [record["nth"] for record in it.records(1)] == [1, 2]
    assert archive.scan_campaign(it.campaign).digest() != before
    # Also when somebody else writes the record of that number in between.
    monkeypatch.setattr("loadstone.archive.run_records.next_failure_number", lambda *_: 1)
    assert not swept_again(it)
    assert it.cell.failure(1, 1).read_bytes() == first
    assert len(it.records(1)) == 3


def swept_again(it: Sweep) -> bool:
    """Another failing try, whatever the server does."""
    shutil.rmtree(it.hits)  # without its folder the server can't start
    it.begin()
    return it.try_run(1)


def test_verify_hashes_records_like_every_other_file(swept, tmp_path: Path) -> None:
    it = swept("--fail-starts", "1")
    it.try_run(1)
    found = verify.verify(it.campaign.root, tmp_path / "tables", lambda _: None)
    assert found.is_intact and found.recorded == 2
    record = it.cell.failure(1, 1)
    record.write_text(record.read_text().replace("server", "swapped"))
    found = verify.verify(it.campaign.root, tmp_path / "tables", lambda _: None)
    assert [text.partition(" ")[0] for text in found.changed] == [record.relative_to(it.campaign.root).as_posix()]


def test_what_failed_is_tried_again_at_the_end_in_the_plan_s_order(swept) -> None:
    it = swept("--fail-starts", "1,2", runs=3)
    assert [it.try_run(run) for run in (1, 2, 3)] == [False, False, True]
    it.attempts().retry(it.campaign, it.folder / "again")
    assert archive.scan_campaign(it.campaign).cells[0].collected() == {1, 2, 3}
    assert len(it.records(1)) == len(it.records(2)) == 1  # what failed once stays known
    again = [line for line in it.said if line.startswith("[again")]
    assert [re.sub(r"about .* left, until \d+:\d+", "...", line) for line in again] == [
        "[again, 2 to go] only at 100/s, run 1; ...; 1 failed so far",
        "[again, 1 to go] only at 100/s, run 2; ...",
    ]
    assert "about 2 s left" in again[0]  # both, by the first guess: nothing was measured yet
    leftover = it.cell.path / ".2.part"  # of a job that was killed between its last link and the removal
    leftover.mkdir()
    (leftover / "SEALED").touch()
    plan.complete(it.campaign, it.said.append)
    assert not it.campaign.is_open and not leftover.exists()


def test_what_fails_again_ends_with_one_list(swept) -> None:
    it = swept("--fail-starts", "1,4", runs=3)
    for run in (1, 2, 3):
        it.try_run(run)
    with pytest.raises(LoadstoneError) as caught:
        it.attempts().retry(it.campaign, it.folder / "again")
    said = str(caught.value)
    assert "1 of 3 planned runs have no result" in said
    assert "run 1 of only at 100/s: failed twice; starting the target: the process 'server' ended (exit code 1)" in said
    assert "snakemake --cores all report" in said and "abandoned.txt" in said
    assert it.campaign.is_open
    assert len(it.records(1)) == 2
    it.begin()
    assert it.try_run(1)
    assert it.said[-1].startswith("[3 of 3] only at 100/s, run 1; about ")


@pytest.mark.parametrize("retries", [0, 3])
def test_how_often_is_configured(swept, retries: int) -> None:
    it = swept("--fail-starts", "all", runs=1, limits={"retries": retries, "give_up_after": 9})
    it.try_run(1)
    with pytest.raises(LoadstoneError, match="1 of 1 planned runs have no result"):
        it.attempts().retry(it.campaign, it.folder / "again")
    assert len(it.records(1)) == 1 + retries


def test_three_failures_in_a_row_stop_the_sweep_and_name_them(swept) -> None:
    it = swept("--fail-starts", "all", runs=6)
    assert [it.try_run(run) for run in (1, 2)] == [False, False]
    with pytest.raises(GivenUpError, match=r"(?s)3 consecutive runs failed.*run 1 of.*run 2 of.*run 3 of only at"):
        it.try_run(3)
    # Nothing more is tried by this invocation, whoever asks.
    with pytest.raises(GivenUpError):
        it.try_run(4)
    assert it.records(4) == []
    it.begin()
    assert not it.try_run(4)


def test_a_success_resets_the_budget(swept) -> None:
    it = swept("--fail-starts", "1,2,4,5,7,8", runs=9)
    assert [it.try_run(run) for run in range(1, 10)] == [False, False, True] * 3


def test_a_job_that_was_killed_counts_as_neither(swept, monkeypatch: pytest.MonkeyPatch) -> None:
    it = swept("--fail-starts", "1,2", runs=6)
    it.try_run(1)

    def killed(*_: object, on_phase: Callable[[str], None], **__: object) -> None:
        on_phase("target")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("loadstone.collect.attempt.collect_run", killed)
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                it.try_run(2)
    it.try_run(3)
    assert it.try_run(4)  # a third failure in a row would have stopped the sweep
    # Killed when the record was written and nothing else: it counts.
    assert [record["phase"] for record in it.records(3)] == ["target"]


def test_killed_after_its_record_a_failure_counts(swept) -> None:
    it = swept("--fail-starts", "all", runs=6, limits={"give_up_after": 1})
    with pytest.raises(GivenUpError):
        it.try_run(1)
    with pytest.raises(GivenUpError):  # the next job of the same invocation, as with --keep-going
        it.try_run(2)
    assert it.records(2) == []


def test_other_errors_stop_at_once_and_leave_no_record(swept) -> None:
    it = swept()
    (it.campaign.path / archive.ABANDONED).touch()
    with pytest.raises(LoadstoneError, match="is closed"):
        it.try_run(1)
    assert it.records(1) == []
    command = it.journal.now()
    assert command is not None and "is closed" in command.log_lines[-1][1]


def test_a_journal_torn_by_a_power_loss_is_read_on(swept) -> None:
    it = swept(runs=4)
    it.try_run(1)
    with it.journal.path.open("ab") as file:
        file.write(b'{"event": "tr\n\xff\n[]\n{"event": "try", "at": "2026"}\n')
    it.try_run(2)
    command = it.journal.now()
    assert command is not None and [each.run for each in command.tries] == [1, 2]


def test_the_time_left_follows_what_runs_took_not_what_they_were_planned_to(swept) -> None:
    it = swept("--slow-start", "0.6", runs=4)
    assert current_progress(it.campaign, it.journal).left_s() == pytest.approx(4 * 1.2)  # a first guess
    for run in (1, 2, 3):
        it.try_run(run)
    command = it.journal.now()
    assert command is not None
    starts = [each.at for each in command.tries]
    mean_s = (starts[2] - starts[0]).total_seconds() / 2
    assert mean_s > 0.8
    assert current_progress(it.campaign, it.journal).left_s() == pytest.approx(mean_s)
    it.begin()  # kept over invocations, without the time between them
    assert current_progress(it.campaign, it.journal).left_s() == pytest.approx(mean_s)
    assert current_progress(it.campaign, Journal(it.folder / "lost")).left_s() == pytest.approx(1.2)


def test_while_others_have_the_machine_it_is_shown_again_and_again_and_said_once(swept, monkeypatch) -> None:
    monkeypatch.setattr(attempt, "REWRITTEN_S", 0.05)
    it = swept()
    waits: list[str] = []

    def run() -> None:
        attempts = replace(it.attempts(), show=lambda seen: waits.append(seen.wait if seen.phase == "waiting" else ""))
        assert attempts.try_run(it.cell, 1, it.folder / "logs/1")

    with exclusive("something else", it.said.append):
        trying = threading.Thread(target=run)
        trying.start()
        while sum("something else by" in wait for wait in waits) < 5:
            time.sleep(0.01)
    trying.join()
    assert len(it.journal.commands()[-1].tries) == 1
    assert all(not text.startswith("waiting") for _, text in it.journal.commands()[-1].log_lines)
    assert len([line for line in it.said if line.startswith("waiting: something else by")]) == 1
    assert waits[-1] == ""
