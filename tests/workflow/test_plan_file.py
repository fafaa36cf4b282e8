"""A job on another machine asks for what its command planned, whatever has come into archive and tables since."""

from pathlib import Path

import pytest
from loadstone import archive
from loadstone.errors import LoadstoneError
from loadstone.tables import cell, layout
from loadstone.workflow import plan as planned
from loadstone.workflow.state import State, key_of, made_from, mark_done, record
from support.rawfiles import write_cell


def look(root: Path, plan: planned.Plan | None = None) -> State:
    return State({"archive": root / "archive", "tables": root / "tables", "host": "here"}, root / "none", plan)


def test_names_stay_as_they_were_planned(tmp_path: Path) -> None:
    write_cell(tmp_path / "archive", {})
    (campaign,) = archive.campaigns(tmp_path / "archive")
    before = look(tmp_path)
    asked, inventory = before.done(key_of(campaign), pending=True), before.inventory()
    plan = planned.Plan("this", {"/".join(key_of(campaign)): asked}, {}, inventory)
    plan.write(tmp_path / "plan.json")
    cell.save_records(tmp_path / "tables", campaign, {})
    scanned = archive.scan_campaign(campaign)
    mark_done(Path(asked), record(made_from(scanned), layout.converted_digest(tmp_path / "tables", campaign)))
    write_cell(tmp_path / "archive", {"2.results.json.zst": b"another run"})
    write_cell(tmp_path / "archive", {}, at="2030-01-01T00:00:00+00:00")
    assert look(tmp_path).done(key_of(campaign), pending=False) != asked
    job = look(tmp_path, planned.read(tmp_path / "plan.json", "this"))
    assert list(job.listings) == [key_of(campaign)]
    assert (job.done(key_of(campaign), pending=False), job.inventory()) == (asked, inventory)


def test_names_that_are_no_text_are_kept(tmp_path: Path) -> None:
    plan = planned.Plan("this", {"a/h\udcff/t": "x/\udcff/1"}, {}, "1")
    plan.write(tmp_path / "plan.json")
    assert planned.read(tmp_path / "plan.json", "this") == plan


def test_a_job_of_an_earlier_command_is_refused(tmp_path: Path) -> None:
    planned.Plan("another", {}, {}, "1").write(tmp_path / "plan.json")
    with pytest.raises(LoadstoneError, match="another one is at work here"):
        planned.read(tmp_path / "plan.json", "this")


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="must see this folder"):
        planned.read(tmp_path / "plan.json", "this")
