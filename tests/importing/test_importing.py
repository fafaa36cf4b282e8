"""Imports: files arrive unchanged, once, with all that was declared; what is interrupted is finished."""

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.archive import metadata, plan, run_records
from loadstone.errors import LoadstoneError
from loadstone.importing import copying
from loadstone.tables import verify
from support import foreign, rawfiles

CELL = "shop/lab/2020-08-24T15:46:00+01:00/100/plain"


def test_a_file_arrives_unchanged_with_what_was_declared(imports, entry):
    imports.write("old/a.txt", foreign.VEGETA.replace("\n", "\r\n"))
    labels = {"pods": 10}
    imports.declare(entry(run=3, labels=labels, duration="1s", version="12.7.0", description="before the move"))
    imports.run()
    found = imports.contents()
    assert set(found) == {f"{CELL}/{name}" for name in ("metadata.json", "3.vegeta.txt", "3.run.json", "3.sha256")} | {
        "shop/lab/2020-08-24T15:46:00+01:00/completion_time.txt"
    }
    assert found[f"{CELL}/3.vegeta.txt"] == (imports.folder / "old/a.txt").read_bytes()
    described = metadata.read(imports.archive / CELL / "metadata.json")
    assert described.problems == [] and described.inferred == {}
    assert (described.version, described.load_model, described.generator) == ("5", "open", "vegeta")
    assert (described.generator_version, described.labels, described.expected_requests) == (
        "12.7.0",
        {"pods": "10"},
        100,
    )
    assert described.imported and (described.runs, described.positions) == (None, [])
    record = json.loads(found[f"{CELL}/3.run.json"])
    digest = hashlib.sha256(found[f"{CELL}/3.vegeta.txt"]).hexdigest()
    assert record["imported"]["files"] == {"3.vegeta.txt": {"source": "old/a.txt", "sha256": digest}}
    assert run_records.read_run_record(imports.archive / CELL / "3.run.json").description == "before the move"
    assert imports.log[-2:] == [
        "1 file imported, 0 were in the archive already: 1 run of 1 campaign",
        "To build tables and pages of it: snakemake --cores all report",
    ]


def test_an_imported_campaign_is_closed_and_lacks_nothing(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    imports.run()
    (campaign,) = archive.campaigns(imports.archive)
    listing = archive.scan_campaign(campaign)
    assert campaign.is_completed and not campaign.is_open
    assert not plan.has_plan(listing) and plan.missing(listing) == [] and listing.problems == []


def test_checksums_cover_every_file(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    imports.run()
    assert verify.verify(imports.archive, imports.folder / "tables", imports.log.append).is_intact
    path = imports.archive / CELL / "1.vegeta.txt"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b" ")
    found = verify.verify(imports.archive, imports.folder / "tables", imports.log.append)
    assert [line.partition(" ")[0] for line in found.changed] == [f"{CELL}/1.vegeta.txt"]


def test_groups_of_the_path_make_names_rates_runs_and_labels(imports, entry):
    for rate in (20, 50):
        for run in (1, 2):
            imports.write(f"old/mesh_{rate}/{run}.hey.csv", foreign.HEY)
    changes = {"variant": "{kind}", "rate": "{rate}", "run": "{run}", "labels": {"from": "{kind}-{rate}"}}
    imports.declare(entry(files="old/**/*.csv", match=r"(?P<kind>\w+)_(?P<rate>\d+)/(?P<run>\d)", **changes))
    imports.run()
    names = [name for name in imports.contents() if name.endswith(".hey.csv")]
    base = "shop/lab/2020-08-24T15:46:00+01:00"
    assert names == [f"{base}/{rate}/mesh/{run}.hey.csv" for rate in (20, 50) for run in (1, 2)]
    described = metadata.read(imports.archive / base / "50/mesh/metadata.json")
    assert (described.load_model, described.users, described.labels) == ("closed", 50, {"from": "mesh-50"})


def test_several_files_of_one_run_and_a_start(imports, entry):
    imports.write("old/a.txt")
    imports.write("old/usage.log", foreign.SAMPLES)
    imports.write("old/raw.k6.json.zst", rawfiles.compress(foreign.k6_json([1.0])))
    imports.declare(
        entry(started="2020-08-24T15:47:00+01:00"),
        entry(files="old/usage.log", zone="+01:00"),
        entry(files="old/*.zst", variant="other", load_model="closed", rate=7.0, measured_phase="default"),
    )
    imports.run()
    cell = imports.archive / CELL
    assert {"1.vegeta.txt", "1.resource-usage.log"} < {path.name for path in cell.iterdir()}
    described = metadata.read(cell / "metadata.json")
    assert (described.zone, described.load_model) == ("+01:00", "open")
    assert run_records.read_run_record(cell / "1.run.json").started == "2020-08-24T15:47:00+01:00"
    other = cell.parents[1] / "7/other"
    assert (other / "1.k6.json.zst").read_bytes() == (imports.folder / "old/raw.k6.json.zst").read_bytes()
    assert metadata.read(other / "metadata.json").measured_phase == "default"


DOCUMENT = f"""\
# Load tests

### 60s 100rps baseline

```
{foreign.VEGETA}```

### 60s 100rps with the observer

```
{foreign.VEGETA}```

```
{foreign.VEGETA}```
"""


def test_blocks_of_a_document_are_runs_and_the_document_is_kept(imports, entry):
    imports.write("old/results.md", DOCUMENT)
    match = r"(?P<rate>\d+)rps (?P<what>[\w ]+) #(?P<run>\d+)$"
    imports.declare(entry(files="old/results.md", match=match, variant="{what}", rate="{rate}", run="{run}"))
    imports.run()
    found = imports.contents()
    base = "shop/lab/2020-08-24T15:46:00+01:00"
    texts = {name: content for name, content in found.items() if name.endswith("vegeta.txt")}
    assert set(texts) == {
        f"{base}/100/baseline/1.vegeta.txt",
        f"{base}/100/with the observer/1.vegeta.txt",
        f"{base}/100/with the observer/2.vegeta.txt",
    }
    assert set(texts.values()) == {foreign.VEGETA.encode()}
    (kept,) = (name for name in found if "/_imported/" in name)
    assert found[kept] == DOCUMENT.encode()
    record = json.loads(found[f"{base}/100/with the observer/2.run.json"])
    assert record["description"] == "60s 100rps with the observer"
    origin = record["imported"]["files"]["2.vegeta.txt"]
    assert (origin["line"], f"{base}/{origin['document']}") == (30, kept)
    assert origin["headings"] == ["Load tests", "60s 100rps with the observer"]
    (campaign,) = archive.campaigns(imports.archive)
    assert archive.scan_campaign(campaign).problems == []


def test_what_no_entry_takes_of_a_document_is_said(imports, entry):
    imports.write("old/results.md", DOCUMENT)
    imports.declare(entry(files="old/results.md", match="baseline"))
    (notice,) = imports.plan().notices
    lines, _, subjects = notice.partition("; match is applied to ")
    assert lines == "old/results.md: no entry matches the results at line 19, 30"
    assert "'Load tests > 60s 100rps with the observer #1'" in subjects
    imports.declare(entry(files="old/results.md", match="no such heading"))
    (line,) = imports.refused()
    assert "match matches none of 3 (it is applied to 'Load tests > " in line


# --- again, and interrupted ------------------------------------------------------------------------------------------


def test_the_same_again_changes_nothing(imports, entry):
    imports.write("old/a.txt")
    imports.write("old/results.md", DOCUMENT)
    imports.declare(entry(), entry(files="old/results.md", match="baseline", variant="doc"))
    imports.run()
    before = {path: path.stat() for path in imports.archive.rglob("*")}
    imports.run()
    after = {path: path.stat() for path in imports.archive.rglob("*")}
    assert before.keys() == after.keys()
    assert all(
        (before[path].st_ino, before[path].st_mtime_ns) == (after[path].st_ino, after[path].st_mtime_ns)
        for path in before
        if path.is_file()
    )
    assert imports.log[-1] == "0 files imported, 2 were in the archive already: 2 runs of 1 campaign"


def test_more_runs_join_those_that_are_there(imports, entry):
    imports.write("old/1.txt")
    imports.declare(entry(match=r"(?P<run>\d)\.txt", run="{run}"))
    imports.run()
    before = imports.contents()
    imports.write("old/2.txt", foreign.VEGETA.replace("79.87ms", "80ms"))
    imports.run()
    after = imports.contents()
    assert before.items() <= after.items() and f"{CELL}/2.vegeta.txt" in after


def test_planning_writes_nothing(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    before = sorted(imports.folder.rglob("*"))
    assert imports.plan().lines() == [f"{CELL}/1.vegeta.txt from old/a.txt"]
    assert sorted(imports.folder.rglob("*")) == before


_CHILD = """
from pathlib import Path
from loadstone.importing import copying, plan
copying.carry_out(plan.make(Path("archive")), print)
"""


def child(folder: Path, **options) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(Path(archive.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        stdout=subprocess.DEVNULL,
        **options,
    )


@pytest.mark.parametrize("reached", [1, 7, 20])
def test_an_import_killed_half_way_is_finished_by_the_next(imports, entry, reached):
    for run in range(1, 41):
        imports.write(f"old/{run}.txt", foreign.VEGETA + "#" * 200_000)
    imports.declare(entry(match=r"(?P<run>\d+)\.txt", run="{run}"))
    running = child(imports.folder)
    while running.poll() is None and len(list(imports.archive.glob("*/*/*/*/*/*.vegeta.txt"))) < reached:
        time.sleep(0.001)
    running.kill()
    running.communicate()
    for path in imports.archive.glob("*/*/*/*/*/*.vegeta.txt"):
        assert path.read_bytes() == (imports.folder / f"old/{path.name.partition('.')[0]}.txt").read_bytes()
    imports.run()
    cell = imports.archive / CELL
    assert len(list(cell.glob("*.vegeta.txt"))) == len(list(cell.glob("*.sha256"))) == 40
    assert list(cell.glob(".*.part")) == []
    assert verify.verify(imports.archive, imports.folder / "tables", imports.log.append).is_intact
    (campaign,) = archive.campaigns(imports.archive)
    assert campaign.is_completed and archive.scan_campaign(campaign).problems == []


def test_what_an_import_left_that_was_killed_after_its_last_link_is_removed(imports, entry):
    imports.write("old/1.txt", foreign.VEGETA)
    imports.declare(entry(match=r"(?P<run>\d+)\.txt", run="{run}"))
    imports.run()
    staged = imports.archive / CELL / ".1.part"
    staged.mkdir()
    (staged / "1.vegeta.txt").write_text(foreign.VEGETA)
    imports.run()
    assert not staged.exists()


def test_a_full_disk_leaves_nothing_half_made(imports, entry):
    imports.write("old/1.txt")
    imports.write("old/2.txt", foreign.VEGETA + "#" * 500_000)
    imports.declare(entry(match=r"(?P<run>\d)\.txt", run="{run}"))
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # noqa: E731
    running = child(imports.folder, preexec_fn=limit)
    _, errors = running.communicate()
    assert running.returncode and "the import stopped" in errors and "1 files were imported completely" in errors
    assert {path.name for path in (imports.archive / CELL).iterdir()} == {
        "metadata.json",
        "1.vegeta.txt",
        "1.run.json",
        "1.sha256",
    }
    imports.run()
    assert (imports.archive / CELL / "2.vegeta.txt").stat().st_size > 500_000


@pytest.fixture
def read_only(imports):
    """The archive's folder, in which nothing can be written; also for root, if that may mount."""
    imports.archive.mkdir()
    if os.geteuid():
        imports.archive.chmod(0o555)
        yield
        return
    mounting = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(imports.archive)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("root may write everywhere, and no read-only file system can be mounted here")
    yield
    subprocess.run(["umount", str(imports.archive)], check=True)


@pytest.mark.usefixtures("read_only")
def test_an_archive_that_cant_be_written_to(imports, entry):
    imports.write("old/a.txt")
    imports.declare(entry())
    with pytest.raises(LoadstoneError, match=r"the import stopped at .*archive/shop.*: (Read-only|Permission)"):
        imports.run()


def test_a_source_that_changes_meanwhile_is_not_taken(imports, entry):
    source = imports.write("old/a.txt")
    imports.declare(entry())
    planned = imports.plan()
    source.write_text(foreign.VEGETA.replace("79.87ms", "80.87ms"))
    with pytest.raises(LoadstoneError, match="has changed while it was imported"):
        copying.carry_out(planned, imports.log.append)
    assert not list(imports.archive.rglob("*.vegeta.txt"))
