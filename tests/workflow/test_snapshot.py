"""What the workflow is asked to make."""

from pathlib import Path

from loadstone import archive
from loadstone.tables import cell
from loadstone.workflow import snapshot
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import Snapshot, tables_fingerprint
from support.rawfiles import write_cell


def test_tables_of_another_version_are_made_again(tmp_path: Path, monkeypatch) -> None:
    write_cell(tmp_path / "archive", {})
    (campaign,) = archive.campaigns(tmp_path / "archive")

    def done() -> str:
        folders = {"archive": tmp_path / "archive", "tables": tmp_path / "tables"}
        taken = Snapshot({**folders, "host": "here", "only": {}}, tmp_path / "none")
        return taken.tables_marker(snapshot.key_of(campaign), pending=False)

    first = done()
    cell.save_records(tmp_path / "tables", campaign, {})
    scanned = archive.scan_campaign(campaign)
    write_marker(Path(first), tables_fingerprint(tmp_path / "tables", scanned))
    assert done() == first
    monkeypatch.setattr(snapshot, "VERSION", -1)
    assert done() != first
