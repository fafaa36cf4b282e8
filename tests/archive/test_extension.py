"""Extensions of campaigns: what they add to the metadata of cells, and what is ignored of broken or hostile ones."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator
from loadstone import archive
from loadstone.archive import Campaign, Cell, extension, metadata, plan
from loadstone.config.yaml_files import SCHEMAS
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket import names
from loadstone.tables import layout
from loadstone.tables.convert import convert_campaign
from loadstone.tables.exclusion import NOT_PLANNED
from support import rawfiles

PLANNED = {"version": "5", "runs": 2, "seed": 7, "order": {"kind": "blocks", "positions": [1, 4]}}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    found = Campaign(tmp_path, "app", "host", "2026-01-01T00:00:00+00:00")
    for variant, positions in (("a", [1, 4]), ("b", [2, 3])):
        write_cell(found, "100", variant, positions)
    return found


def write_cell(campaign: Campaign, rate: str, variant: str, positions: list[int]) -> None:
    cell = Cell(campaign, rate, variant)
    cell.path.mkdir(parents=True)
    content = PLANNED | {"runs": len(positions), "order": {"kind": "blocks", "positions": positions}}
    (cell.path / "metadata.json").write_text(json.dumps(content))


def extend(campaign: Campaign, number: int, *cells: dict[str, Any], **more: Any) -> None:
    content = {"number": number, "time": "t", "loadstone": "1", "declaration": "d", "cells": list(cells)} | more
    (campaign.path / f"extension.{number}.json").write_text(json.dumps(content))


def cell(variant: str, first: int, positions: list[int], rate: str = "100", **more: Any) -> dict[str, Any]:
    return {"rate": rate, "variant": variant, "firstRun": first, "positions": positions} | more


def test_runs_positions_parts_and_identity_are_merged(campaign: Campaign) -> None:
    extend(campaign, 1, cell("a", 3, [5, 8]), identities={"a": "new"})
    extend(campaign, 2, cell("a", 5, [9]), cell("c", 1, [10]))
    write_cell(campaign, "100", "c", [10])
    found = metadata.read_cell(Cell(campaign, "100", "a"))
    assert (found.runs, found.positions, found.parts) == (5, [1, 4, 5, 8, 9], [1, 1, 2, 2, 3])
    assert [found.part(run) for run in range(1, 7)] == [1, 1, 2, 2, 3, 1]
    assert found.target == {"identity": "new"}
    other = metadata.read_cell(Cell(campaign, "100", "b"))
    assert (other.runs, other.parts, other.target) == (2, [], {})
    new = metadata.read_cell(Cell(campaign, "100", "c"))
    assert (new.runs, new.positions, new.parts) == (1, [10], [3])
    listing = archive.scan_campaign(campaign)
    assert listing.problems == [] and len(plan.missing(listing)) == 8
    assert plan.declared_variants(campaign)[-1] == "c"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        json.dumps({"number": 1}).encode(),
        json.dumps(
            {"time": "t", "loadstone": "1", "declaration": "d", "cells": [cell("../../../evil", 1, [1])]}
        ).encode(),
        json.dumps({"time": "t", "loadstone": "1", "declaration": "d", "cells": [cell("a", 1, [1], "..")]}).encode(),
    ],
)
def test_one_that_can_not_be_read_or_leads_elsewhere_is_ignored(campaign: Campaign, content: bytes) -> None:
    (campaign.path / "extension.1.json").write_bytes(content)
    assert extension.read(campaign) == []
    assert metadata.read_cell(Cell(campaign, "100", "a")).runs == 2


@pytest.mark.parametrize("first", [0, 1, 2, 4, 10**9])
def test_runs_that_do_not_follow_are_ignored(campaign: Campaign, first: int) -> None:
    extend(campaign, 1, cell("a", first, [5, 6, 7]))
    found = metadata.read_cell(Cell(campaign, "100", "a"))
    assert (found.runs, found.positions, found.parts) == (2, [1, 4], [])


def test_its_files_change_the_fingerprint_and_go_into_buckets(campaign: Campaign) -> None:
    before = archive.scan_campaign(campaign).digest()
    extend(campaign, 1, cell("a", 3, [5]))
    assert archive.scan_campaign(campaign).digest() != before
    for name, stage in (("extension.1.json", names.PLAN), ("completion_time.2.txt", names.MARKS)):
        path = f"app/host/2026-01-01T00:00:00+00:00/{name}"
        assert names.belongs(path) and names.TransferUnit((path,)).stage == stage
        assert not names.belongs(f"app/host/2026-01-01T00:00:00+00:00/100/a/{name}")
    assert not names.belongs("app/host/2026-01-01T00:00:00+00:00/metadata.json")


def test_what_is_written_meets_the_published_schema_and_is_read(campaign: Campaign) -> None:
    written = extension.Extension(
        number=1,
        time="2026-11-25T10:00:00+01:00",
        loadstone="1.0",
        declaration="digest",
        cells=[
            extension.FurtherRuns("100", "a", 3, [5, 6]),
            extension.FurtherRuns("0.5", "new", 1, [7], metadata=PLANNED),
        ],
        identities={"a": "digest"},
        differences=["vegeta: 1 became 2"],
        tools={"vegeta": "2"},
    )
    schema = json.loads((SCHEMAS / "extension.schema.json").read_text())
    content = json.loads(written.encoded())
    Draft202012Validator(schema).validate(content)
    assert content.keys() == schema["properties"].keys()
    (campaign.path / written.name).write_bytes(written.encoded())
    assert extension.read(campaign) == [written]


def test_each_part_is_complete_for_itself(campaign: Campaign) -> None:
    assert not campaign.is_completed
    (campaign.path / "completion_time.txt").touch()
    assert campaign.is_completed
    extend(campaign, 1, cell("a", 3, [5]))
    assert not campaign.is_completed and campaign.is_open
    (campaign.path / "completion_time.2.txt").touch()
    assert campaign.is_completed
    (campaign.path / "completion_time.txt").unlink()  # by somebody who wants a run again
    assert not campaign.is_completed
    assert archive.scan_campaign(campaign).problems == []


def test_an_extension_that_was_interrupted_is_not_complete(campaign: Campaign) -> None:
    extend(campaign, 1, cell("c", 1, [9], metadata=PLANNED))
    for number, name in enumerate("aabb"):
        (campaign.path / f"100/{name}/{number % 2 + 1}.results.json.zst").touch()
    assert plan.missing(archive.scan_campaign(campaign)) == []
    with pytest.raises(LoadstoneError, match="its extension was interrupted"):
        plan.complete(campaign, print)
    assert not list(campaign.path.glob("completion_time*"))


def test_one_that_was_lost_or_damaged_is_a_problem_and_its_runs_are_excluded(
    campaign: Campaign, tmp_path: Path
) -> None:
    extend(campaign, 1, cell("a", 3, [5]))
    for name, run in (("a", 1), ("a", 2), ("a", 3), ("b", 1)):
        (campaign.path / f"100/{name}/{run}.results.json.zst").write_bytes(
            rawfiles.compress(rawfiles.lines([10**6] * 9))
        )
    (campaign.path / "completion_time.txt").touch()
    (campaign.path / "completion_time.2.txt").touch()
    tables = tmp_path / "tables"

    def faults() -> dict[tuple[str, int], bool]:
        convert_campaign(campaign, tables, lambda _, variant: variant, 1, lambda _: None)
        rows = pq.read_table(layout.scope_file(tables, "facts", campaign)).to_pylist()
        return {
            (row["variant"], row["run"]): any(fault["code"] == NOT_PLANNED for fault in row["faults"]) for row in rows
        }

    assert extension.problems(campaign) == [] and not any(faults().values())
    content = (campaign.path / "extension.1.json").read_bytes()
    for damage in (content[:20], None):
        (campaign.path / "extension.1.json").unlink()
        if damage is not None:
            (campaign.path / "extension.1.json").write_bytes(damage)
        assert faults() == {("a", 1): False, ("a", 2): False, ("a", 3): True, ("b", 1): False}
        problems = pq.read_table(layout.scope_file(tables, "problems", campaign)).to_pylist()
        assert any(row["source"].endswith("extension.1.json") for row in problems)
        (campaign.path / "extension.1.json").write_bytes(content)
        assert not any(faults().values())


def test_giving_up_an_extension_leaves_the_first_part_complete(campaign: Campaign) -> None:
    (campaign.path / "abandoned.txt").touch()
    assert not campaign.is_completed
    (campaign.path / "completion_time.txt").touch()
    extend(campaign, 1, cell("a", 3, [5]))
    assert campaign.is_completed and not campaign.is_open
