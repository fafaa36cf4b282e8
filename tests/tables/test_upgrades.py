"""Tables of an older version are made again whole, from raw results that stay as they are, and nothing is lost."""

import hashlib
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from loadstone import archive
from loadstone.archive import Cell, scan_campaign
from loadstone.publish.bundle import table_files
from loadstone.tables import VERSION, cell, layout
from loadstone.workflow import snapshot
from support import mixed
from tables.tabling import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    mixed.write(made.archive)
    for campaign in list(archive.campaigns(made.archive))[1:]:
        shutil.rmtree(campaign.path)
    return made


def contents_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_an_older_version_is_made_again_and_gives_what_a_new_one_gives(project, tmp_path, monkeypatch) -> None:
    raw = contents_of(project.archive)
    for module in (cell, snapshot):
        monkeypatch.setattr(module, "VERSION", VERSION - 1)
    (campaign,) = archive.campaigns(project.archive)
    project.make()
    for path in table_files(project.tables):  # as if that version had known fewer columns and another compression
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.select(table.column_names[:-1]), path, compression="snappy")
    records = cell.load_records(project.tables, campaign)
    for record in records.values():  # whose sizes that version would have recorded
        place = Cell(campaign, record.rate, record.variant_dir)
        record.tables = {name: layout.cell_file(project.tables, name, place).stat().st_size for name in record.tables}
    cell.save_records(project.tables, campaign, records)
    older = snapshot.tables_fingerprint(project.tables, scan_campaign(campaign))
    monkeypatch.undo()

    assert snapshot.tables_fingerprint(project.tables, scan_campaign(campaign)) != older, (
        "the workflow asks for the tables"
    )
    assert len(project.convert()) == len(scan_campaign(campaign).cells), "every cell is read again"
    project.analyse()
    fresh = Project(tmp_path / "fresh")
    shutil.copytree(project.archive, fresh.archive)
    fresh.make()
    assert {path.relative_to(project.tables) for path in table_files(project.tables)} == {
        path.relative_to(fresh.tables) for path in table_files(fresh.tables)
    }
    for path in table_files(project.tables):
        assert path.read_bytes() == (fresh.tables / path.relative_to(project.tables)).read_bytes(), path
    assert contents_of(project.archive) == raw
    assert project.convert() == []


def test_an_upgrade_that_was_killed_goes_on_where_it_was(project, monkeypatch) -> None:
    monkeypatch.setattr(cell, "VERSION", VERSION - 1)
    project.make()
    monkeypatch.undo()
    (campaign,) = archive.campaigns(project.archive)
    path = layout.manifest_file(project.tables, campaign)
    path.write_bytes(path.read_bytes()[:1000])  # a disk that was full
    assert len(project.convert()) == len(scan_campaign(campaign).cells)
    assert project.convert() == []
