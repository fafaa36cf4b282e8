"""An archive to a bucket and from there to another machine: all of it, once, and nothing twice."""

import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket.transfer import preview, push
from support.buckets import (
    EVENING,
    LARGE,
    MORNING,
    STRANGE,
    at_home,
    contents,
    pulled,
    pushed,
    write_run,
    write_tables,
)
from support.relay import Relay, relayed


def written(relay: Relay) -> list[str]:
    """The archive's objects that were written, in order."""
    paths = [unquote(path.partition("?")[0]) for method, path in relay.asked if method == "PUT"]
    return [path.partition("/archive/")[2] for path in paths if "/archive/" in path]


def test_the_same_archive_is_elsewhere(archive, elsewhere, bucket) -> None:
    before = contents(archive)
    pushed(archive, bucket)
    assert contents(archive) == before
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == before
    assert not list(elsewhere.rglob(".*"))


def test_a_second_time_nothing_is_transferred(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    with relayed(bucket.endpoint) as relay:
        for root, work in ((archive, pushed), (elsewhere, pulled)):
            relay.forget()
            assert "nothing was transferred" in work(root, bucket)  # what was compared is known of this address
            work(root, bucket, endpoint=relay.endpoint)
            relay.forget()
            assert "nothing was transferred" in work(root, bucket, endpoint=relay.endpoint)
            assert not [path for _, path in relay.asked if "/archive/" in path.partition("?")[0]]
        assert "nothing was transferred" in pushed(elsewhere, bucket)


def test_what_was_added_is_transferred_alone(archive, elsewhere, bucket) -> None:
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    write_run(archive / "demo/here" / EVENING / "100/plain", 3)
    assert "4 files (" in pushed(archive, bucket)
    assert "4 files (" in pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)


def extend(archive: Path, *, is_complete: bool) -> Path:
    """A third run of each variant of the complete campaign, planned by an extension."""
    campaign = archive / "demo/here" / MORNING
    cells = [{"rate": "100", "variant": variant, "firstRun": 3, "positions": [9]} for variant in ("plain", STRANGE)]
    content = {"number": 1, "time": "t", "loadstone": "1", "declaration": "d", "cells": cells}
    (campaign / "extension.1.json").write_text(json.dumps(content))
    for variant in ("plain", STRANGE) if is_complete else ():
        (campaign / f"100/{variant}/3.results.json.zst").unlink(missing_ok=True)
        write_run(campaign / "100" / variant, 3)
    if is_complete:
        (campaign / "completion_time.2.txt").write_text("2026-11-21T09:00:00+01:00\n")
    return campaign


def test_a_campaign_that_was_extended_after_its_push(archive, elsewhere, bucket) -> None:
    (archive / "demo/here" / MORNING / "100/plain/3.results.json.zst").unlink()  # its place is that of a further run
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    extend(archive, is_complete=False)
    pushed(archive, bucket)
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)
    assert not Campaign(elsewhere, "demo", "here", MORNING).is_completed
    extend(archive, is_complete=True)
    pushed(archive, bucket)
    assert "9 files (" in pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)
    assert Campaign(elsewhere, "demo", "here", MORNING).is_completed


def test_a_further_run_that_is_not_whole_in_the_bucket_is_not_planned_elsewhere(archive, elsewhere, bucket) -> None:
    (archive / "demo/here" / MORNING / "100/plain/3.results.json.zst").unlink()
    campaign = extend(archive, is_complete=True)
    (campaign / "completion_time.2.txt").unlink()
    pushed(archive, bucket)
    (bucket.folder / f"archive/demo/here/{MORNING}/100/plain/3.results.json.zst").unlink()
    assert "its push has not ended" in pulled(elsewhere, bucket)
    there = Campaign(elsewhere, "demo", "here", MORNING)
    assert there.is_completed and not (there.path / "extension.1.json").exists()


def test_a_run_begins_with_its_checksums_and_ends_with_its_results(archive, bucket) -> None:
    with relayed(bucket.endpoint) as relay:
        pushed(archive, bucket, endpoint=relay.endpoint)
        order = written(relay)
    assert len(order) == len(contents(archive))
    for campaign in (MORNING, EVENING):
        names = [name for name in order if campaign in name]
        of_run = [name.rpartition("/")[2] for name in names if "/100/plain/2." in name]
        assert of_run[0] == "2.sha256" and of_run[-1] == "2.results.json.zst" and len(of_run) == 4
        plans = [index for index, name in enumerate(names) if name.endswith("metadata.json")]
        assert min(plans) > max(index for index, name in enumerate(names) if name.endswith(".zst"))
        assert names[-1].endswith("completion_time.txt") == (campaign == MORNING)


def test_what_belongs_to_no_run_stays_at_home(archive, elsewhere, bucket) -> None:
    before = contents(archive)
    at_home(archive)
    assert "4 files in the archive's folder belong to no campaign and are not pushed" in pushed(archive, bucket)
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == before


def test_a_run_that_is_being_written_stays_until_it_is_whole(archive, bucket) -> None:
    cell = Campaign(archive, "demo", "here", MORNING).path / "100/plain"
    (cell / ".2.part").mkdir()
    (cell / "2.results.json.zst").unlink()
    assert "run 2 of demo/here" in pushed(archive, bucket)
    there = bucket.objects()
    assert not [name for name in there if "/plain/2." in name and MORNING in name]
    assert not [name for name in there if name.endswith("completion_time.txt")]  # it would be whole without it


def test_a_large_file_is_whole_or_not_there(archive, elsewhere, bucket) -> None:
    cell = archive / "demo/here" / EVENING / "100/plain"
    write_run(cell, 3, size=4 * LARGE)
    with relayed(bucket.endpoint) as relay:
        relay.at = lambda asked: "partNumber=2" not in asked[1]
        relay.mends = True
        declared = bucket.declared(endpoint=relay.endpoint)
        with pytest.raises(LoadstoneError, match="run the same command again"):
            push(archive, archive.parent / "tables", declared, lambda _: None)
    bucket.check_runs()
    assert not [name for name in bucket.objects() if name.endswith(f"{EVENING}/100/plain/3.results.json.zst")]
    pushed(archive, bucket)
    assert not [name for name in bucket.objects() if name.startswith("pushing/")]
    pulled(elsewhere, bucket)
    assert contents(elsewhere) == contents(archive)


def test_of_tables_what_changed_is_replaced_and_what_is_gone_is_removed(archive, elsewhere, bucket) -> None:
    tables = archive.parent / "tables"
    write_tables(tables, MORNING, EVENING)
    (tables / ".manifest").mkdir()
    (tables / ".manifest/x.parquet").write_text("of this machine")
    pushed(archive, bucket)
    write_tables(tables, MORNING, says="others")
    (tables / f"runs/app_dir=demo/host_dir=here/timestamp_dir={EVENING}/part.parquet").unlink()
    assert "1 file (" in pushed(archive, bucket)
    there = {name: text for name, text in bucket.objects().items() if name.startswith("tables/")}
    assert there == {f"tables/runs/app_dir=demo/host_dir=here/timestamp_dir={MORNING}/part.parquet": b"others"}
    assert "nothing was transferred" in pushed(archive, bucket, tables=False)
    write_tables(elsewhere.parent / "tables", "2020")
    (elsewhere / "demo").mkdir(parents=True)
    assert "its tables are left unchanged" in pushed(elsewhere, bucket)  # they are of more than is here
    assert {name: text for name, text in bucket.objects().items() if name.startswith("tables/")} == there


def test_a_dry_run_says_what_would_be_transferred(archive, elsewhere, bucket) -> None:
    tables, count = archive.parent / "tables", len(contents(archive))
    lines = preview("push", archive, tables, bucket.declared())
    assert f"transferred: {count} files" in lines[1] and not bucket.objects()
    pushed(archive, bucket)
    before = bucket.objects()
    assert "transferred: 0 files" in preview("push", archive, tables, bucket.declared())[1]
    assert f"transferred: {count} files" in preview("pull", elsewhere, tables, bucket.declared())[1]
    assert bucket.objects() == before and not elsewhere.exists()
