"""A job on another machine asks for what its command planned, whatever has come into archive and tables since."""

from pathlib import Path

import pytest
from loadstone import archive
from loadstone.errors import LoadstoneError
from loadstone.tables import cell
from loadstone.workflow.markers import Requested, read_requested, write_marker
from loadstone.workflow.snapshot import Snapshot, key_of, tables_fingerprint
from support.rawfiles import write_cell


def snapshot(root: Path, requested: Requested | None = None) -> Snapshot:
    return Snapshot(
        {"archive": root / "archive", "tables": root / "tables", "host": "here", "only": {}}, root / "none", requested
    )


def test_names_stay_as_they_were_planned(tmp_path: Path) -> None:
    write_cell(tmp_path / "archive", {})
    (campaign,) = archive.campaigns(tmp_path / "archive")
    before = snapshot(tmp_path)
    asked, inventory = before.tables_marker(key_of(campaign), pending=True), before.inventory_marker()
    plan = Requested("this", {"/".join(key_of(campaign)): asked}, {}, inventory)
    plan.write(tmp_path / "plan.json")
    cell.save_records(tmp_path / "tables", campaign, {})
    scanned = archive.scan_campaign(campaign)
    write_marker(Path(asked), tables_fingerprint(tmp_path / "tables", scanned))
    write_cell(tmp_path / "archive", {"2.results.json.zst": b"another run"})
    write_cell(tmp_path / "archive", {}, at="2030-01-01T00:00:00+00:00")
    assert snapshot(tmp_path).tables_marker(key_of(campaign), pending=False) != asked
    job = snapshot(tmp_path, read_requested(tmp_path / "plan.json", "this"))
    assert list(job.listings) == [key_of(campaign)]
    assert (job.tables_marker(key_of(campaign), pending=False), job.inventory_marker()) == (asked, inventory)


def test_names_that_are_no_text_are_kept(tmp_path: Path) -> None:
    plan = Requested("this", {"a/h\udcff/t": "x/\udcff/1"}, {}, "1")
    plan.write(tmp_path / "plan.json")
    assert read_requested(tmp_path / "plan.json", "this") == plan


def test_a_job_of_an_earlier_command_is_refused(tmp_path: Path) -> None:
    Requested("another", {}, {}, "1").write(tmp_path / "plan.json")
    with pytest.raises(LoadstoneError, match="another one has begun"):
        read_requested(tmp_path / "plan.json", "this")


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="must see this folder"):
        read_requested(tmp_path / "plan.json", "this")
