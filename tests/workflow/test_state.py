"""What the workflow is asked to make."""

from pathlib import Path

from loadstone import archive
from loadstone.tables import cell, layout
from loadstone.workflow import state
from loadstone.workflow.state import State, made_from, mark_done, record
from support.rawfiles import write_cell


def test_tables_of_another_version_are_made_again(tmp_path: Path, monkeypatch) -> None:
    write_cell(tmp_path / "archive", {})
    (campaign,) = archive.campaigns(tmp_path / "archive")

    def done() -> str:
        look = State(
            {"archive": tmp_path / "archive", "tables": tmp_path / "tables", "host": "here"}, tmp_path / "none"
        )
        return look.done(state.key_of(campaign), pending=False)

    first = done()
    cell.save_records(tmp_path / "tables", campaign, {})
    scanned = archive.scan_campaign(campaign)
    mark_done(Path(first), record(made_from(scanned), layout.converted_digest(tmp_path / "tables", campaign)))
    assert done() == first
    monkeypatch.setattr(state, "VERSION", -1)
    assert done() != first
