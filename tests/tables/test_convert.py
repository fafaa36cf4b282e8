"""Raw files to tables: what they hold, what is wrong with them, and what is read again."""

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from loadstone.errors import LoadstoneError
from loadstone.tables import cell, layout, schema
from loadstone.tables.convert import convert_campaign
from loadstone.tables.layout import cell_file
from support import rawfiles
from support.rawfiles import lines, write_cell

RUN = rawfiles.compress(lines([2_000_000] * 100))
KEY = {"app": "demo", "host": "here", "timestamp": rawfiles.TIMESTAMP, "variant": "istio", "rate": 100.0, "run": 1}


def problems(project) -> list[tuple]:
    return [
        (row["run"], row["source"].rpartition("/")[2], row["problem"])
        for row in project.rows("SELECT * FROM problems ORDER BY run NULLS FIRST, source, problem")
    ]


# --- what tables hold ------------------------------------------------------------------------------------------------


def test_every_column_of_a_real_attack(project, attack):
    summary = json.dumps(attack.report).encode()
    files = {"1.results.bin": attack.binary, "1.summary.json": summary, "1.warmups.json.zst": RUN}
    cell = write_cell(project.archive, files, variant="envoy")
    project.make()
    codes = project.rows("SELECT code, count(*) n FROM requests WHERE phase = 'test' GROUP BY code")
    assert {str(row["code"]): row["n"] for row in codes} == attack.report["status_codes"]
    assert project.row("SELECT count(*) n FROM requests WHERE phase = 'warmup'")["n"] == 100
    classes = project.rows("SELECT error_class, count(*) n FROM requests WHERE phase = 'test' GROUP BY 1 ORDER BY 1")
    assert [tuple(row.values()) for row in classes] == [
        ("http_4xx", 20),
        ("http_503", 20),
        ("refused", 20),
        (None, 40),
    ]
    first = project.row("SELECT * FROM requests WHERE phase = 'test' AND seq = 0")
    assert {name: first[name] for name in KEY} == KEY
    assert (first["variant_dir"], first["stream"], first["code"]) == ("envoy", "main", 200)
    run = project.row("SELECT * FROM runs")
    assert {name: run[name] for name in KEY} == KEY
    first_ns = project.row("SELECT min(sent_at) t FROM requests WHERE phase = 'test'")["t"]
    assert run["started_at"] == datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first_ns // 1000)
    assert dict(run["labels"]) == {"pods": "10"}
    assert run["source"] == (cell.path / "1.results.bin").relative_to(project.archive).as_posix()
    assert (run["evidence"], run["requests"], run["expected_requests"], run["complete"]) == ("raw", 100, 100, True)
    assert (run["load_model"], run["generator"], run["metadata_version"]) == ("open", "vegeta", "5")
    assert (run["duration_s"], run["warmup_rate"], run["replicas"]) == (1.0, 5.0, 1)
    assert (run["excluded"], run["exclusion_reason"], run["problems"], run["tags"]) == (False, None, [], [])


def test_every_format_of_one_attack_gives_the_same_rows(project, attack):
    contents = {"json": attack.json, "csv": attack.csv, "bin": attack.binary}
    suffixes = [*contents, *(f"{suffix}.zst" for suffix in contents)]
    files = {
        f"{run}.results.{suffix}": contents.get(suffix) or rawfiles.compress(contents[suffix.removesuffix(".zst")])
        for run, suffix in enumerate(suffixes, 1)
    }
    write_cell(project.archive, files)
    project.make()
    by_run = [
        project.rows(f"SELECT * EXCLUDE (run) FROM requests WHERE run = {run} ORDER BY seq")
        for run in range(1, len(suffixes) + 1)
    ]
    assert len(by_run[0]) == 100 and {row["code"] for row in by_run[0]} == {0, 200, 204, 404, 503}
    assert all(rows == by_run[0] for rows in by_run)


def test_summaries_are_what_vegeta_reported(project, attack):
    files = {"1.results.json": attack.json, "1.summary.json": json.dumps(attack.report, indent=2).encode()}
    write_cell(project.archive, files)
    project.make()
    row, report = project.row("SELECT * FROM summaries"), attack.report
    assert (row["stream"], row["requests"], row["success"]) == ("main", 100, report["success"])
    assert row["mean_ns"] == report["latencies"]["mean"]
    assert [row[f"{name}_ns"] for name in ("min", "p50", "p90", "p95", "p99", "max")] == [
        report["latencies"][name] for name in ("min", "50th", "90th", "95th", "99th", "max")
    ]
    assert row["throughput"] == report["throughput"]
    assert dict(row["status_codes"]) == report["status_codes"]


def test_side_streams_stay_apart(project):
    files = {f"1.{part}results.json.zst": RUN for part in ("", "presidio.", "req_0.presidio.")}
    write_cell(project.archive, files)
    project.make()
    streams = project.rows("SELECT stream, count(*) n FROM requests GROUP BY stream ORDER BY stream")
    assert [tuple(row.values()) for row in streams] == [("main", 100), ("presidio", 100), ("presidio.req_0", 100)]
    assert project.row("SELECT requests FROM runs")["requests"] == 100
    assert [row["stream"] for row in project.rows("SELECT stream FROM cells ORDER BY 1")] == [
        "main",
        "presidio",
        "presidio.req_0",
    ]


@pytest.mark.parametrize(
    ("version", "mode", "shift_ns"),
    [("3", "serial", 5), ("4", "serial", 5), ("5", "serial", 0), ("4", "vegeta", 0)],
)
def test_old_serial_results_stamp_the_end(project, version, mode, shift_ns):
    write_cell(project.archive, {"1.results.json": lines([5] * 100)}, version=version, testMode=mode)
    project.make()
    first = project.row("SELECT epoch_ns(sent_at) t FROM requests WHERE seq = 0")["t"]
    assert first == rawfiles.START_NS - shift_ns


def test_the_plan(project):
    write_cell(project.archive, {"2.results.json.zst": RUN}, order={"positions": [3, 1, 2]})
    project.make()
    rows = project.rows("SELECT run, position, collected FROM planned ORDER BY run")
    assert [tuple(row.values()) for row in rows] == [(1, 3, False), (2, 1, True), (3, 2, False)]


def test_resources(project):
    header = b"sampled_at,scope,name,cpu_millicores,memory_mib\n"
    content = header + b"2026-11-21T13:00:00.5+02:00,process,envoy,12.5,\nnonsense\n"
    write_cell(project.archive, {"1.results.json.zst": RUN, "1.resources.csv.zst": rawfiles.compress(content)})
    project.make()
    row = project.row("SELECT * FROM resources")
    assert (row["scope"], row["name"], row["cpu_millicores"], row["memory_mib"]) == ("process", "envoy", 12.5, None)
    assert row["sampled_at"].isoformat() == "2026-11-21T11:00:00.500000+00:00"
    assert (1, "1.resources.csv.zst", "holds 1 corrupt record (line 3)") in problems(project)


def test_a_large_cell_has_row_groups_and_sorted_out_columns(project):
    cell = write_cell(project.archive, {"1.results.json.zst": rawfiles.compress(lines([7] * 250_000, rate=25_000))})
    project.convert()
    file = pq.ParquetFile(cell_file(project.tables, "requests", cell))
    assert 2 <= file.metadata.num_row_groups <= 4
    assert file.metadata.num_rows == 250_000


# --- what is wrong ---------------------------------------------------------------------------------------------------


def test_two_formats_of_one_run_count_once(project, attack):
    write_cell(project.archive, {"1.results.bin": attack.binary, "1.results.json": attack.json})
    project.make()
    assert project.row("SELECT count(*) n FROM requests")["n"] == 100
    assert (1, "1.results.bin", "is not used: 1.results.json holds the same") in problems(project)


def test_what_a_file_lacks_is_named(project):
    files = {
        "1.results.json.zst": RUN[:-9],
        "2.results.json": lines([1] * 100) + b"garbage\n",
        "3.results.json.zst": b"",
        "4.warmups.json.zst": RUN,
        "5.results.json.zst": RUN,
        "5.warmups.json.zst": RUN[:50],
        "5.summary.json": b"{}",
        "notes.txt": b"stray",
    }
    write_cell(project.archive, files)
    project.make()
    assert problems(project) == [
        (None, "notes.txt", "is not a file of a run"),
        (1, "1.results.json.zst", "is truncated: the compressed data end early"),
        (2, "2.results.json", "holds 1 corrupt record (line 101)"),
        (3, "3.results.json.zst", "is truncated: it is empty"),
        (4, "plain", "has no results"),
        (5, "5.summary.json", "is damaged: it is not a valid vegeta report"),
        (5, "5.warmups.json.zst", "is truncated: the compressed data end early"),
    ]
    assert [row["excluded"] for row in project.rows("SELECT excluded FROM runs ORDER BY run")] == [True] * 4 + [False]
    assert project.row("SELECT problem FROM problems WHERE source LIKE '%notes.txt'")
    assert project.row("SELECT variant, rate FROM problems WHERE source LIKE '%notes.txt'") == {
        "variant": "plain",
        "rate": 100.0,
    }


def test_a_summary_that_counts_other_requests_is_a_problem(project, attack):
    write_cell(
        project.archive,
        {"1.results.json.zst": RUN, "1.summary.json": json.dumps(attack.report | {"requests": 99}).encode()},
    )
    project.make()
    assert problems(project) == [(1, "1.summary.json", "counts 99 requests, the results contain 100")]
    assert not project.row("SELECT excluded FROM runs")["excluded"]


def test_nothing_in_the_archive_makes_it_crash_or_write_outside(project, tmp_path):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    outside = tmp_path / "outside"
    outside.mkdir()
    (cell.path / "2.results.json.zst").symlink_to("/nowhere")
    (cell.path / "3.results.json.zst").symlink_to(tmp_path / "loop")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(cell.path / "4.results.json.zst")
    (cell.path / "5.results.json.zst").mkdir()
    (cell.path.parent / "linked").symlink_to(cell.path)
    os.mkfifo(cell.path.parent.parent / "pipe")
    before = sorted(project.archive.rglob("*"))
    project.make()
    assert sorted(project.archive.rglob("*")) == before
    assert list(outside.iterdir()) == []
    assert len(project.rows("SELECT DISTINCT source FROM problems")) >= 5


def test_a_link_among_the_tables_is_not_followed_out_of_them(project, tmp_path):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.tables / "requests").mkdir(parents=True)
    (project.tables / "requests/app_dir=demo").symlink_to(outside)
    with pytest.raises(LoadstoneError, match="resolves to a path outside"):
        project.convert()
    assert [path for path in outside.rglob("*") if path.is_file()] == []


def test_a_pipe_in_place_of_the_metadata_is_not_waited_for(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    (cell.path / "metadata.json").unlink()
    os.mkfifo(cell.path / "metadata.json")
    project.make()
    assert project.row("SELECT excluded FROM runs")["excluded"]


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "quo'te\"s",
        "<script>alert(1)<",
        "50%",
        "a=b",
        "*?[x]",
        "{app}",
        "ünï",
        "-rf",
        "a;b",
        "x..",
        "~",
    ],
)
def test_names_survive(project, name):
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant=name, app=name, host=name)
    project.make()
    names = {"app": name, "host": name, "variant": name}
    for table in ("requests", "runs", "cells", "planned", "problems"):
        for row in project.rows(f"SELECT DISTINCT app, host, variant FROM {table}"):
            assert row == names, table
    assert project.row("SELECT excluded FROM runs") == {"excluded": False}
    assert {path.relative_to(project.tables).parts[0] for path in project.tables.rglob("*.parquet")} >= {
        "runs",
        "cells",
    }


def test_a_name_that_is_no_utf8(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant=os.fsdecode(b"caf\xe9"))
    project.make()
    assert project.row("SELECT variant FROM runs") == {"variant": "caf\\xe9"}


def test_a_very_long_name(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant="ü" * 120)
    project.make()
    assert project.row("SELECT DISTINCT variant FROM requests") == {"variant": "ü" * 120}


def test_no_column_of_runs_is_dropped_for_want_of_its_declaration(project, three_cells):
    records = cell.load_records(project.tables, three_cells[0].campaign)
    (run, *_) = records["50", "plain"].runs
    of_campaign = {"faults", "problems", "requests_file"}
    assert run.keys() == set(schema.SCHEMAS["facts"].names) - of_campaign


# --- what is read again ----------------------------------------------------------------------------------------------


@pytest.fixture
def three_cells(project):
    """Three cells of three runs, converted."""
    files = {f"{run}.results.json.zst": RUN for run in (1, 2, 3)}
    cells = [write_cell(project.archive, files, rate=rate) for rate in ("50", "100", "200")]
    assert project.convert() == ["50/plain", "100/plain", "200/plain"]
    return cells


def test_nothing_is_read_twice(project, three_cells):
    files = {path: path.stat().st_mtime_ns for path in (project.tables / "requests").rglob("*.parquet")}
    assert project.convert() == []
    assert {path: path.stat().st_mtime_ns for path in (project.tables / "requests").rglob("*.parquet")} == files


def test_a_new_run_reads_its_cell_alone(project, three_cells):
    (three_cells[1].path / "4.results.json.zst").write_bytes(RUN)
    assert project.convert() == ["100/plain"]
    assert "new: 4.results.json.zst" in project.log[0]
    assert project.row("SELECT count(*) n FROM requests")["n"] == 1000


def test_another_mtime_alone_reads_nothing(project, three_cells):
    for path in three_cells[0].path.iterdir():
        os.utime(path, (1, 1))
    assert project.convert() == []
    records = cell.load_records(project.tables, three_cells[0].campaign)
    assert records["50", "plain"].sources["metadata.json"].mtime_ns == 10**9


def test_the_same_size_with_another_content_is_noticed(project, three_cells):
    path = three_cells[2].path / "1.results.json.zst"
    size = path.stat().st_size
    changed = rawfiles.compress(lines([3_000_000] * 100))
    path.write_bytes(changed + bytes(max(0, size - len(changed))))
    time.sleep(0.01)
    path.write_bytes(path.read_bytes()[:size])
    assert project.convert() == ["200/plain"]


def test_removed_runs_cells_and_tables(project, three_cells):
    (three_cells[0].path / "3.results.json.zst").unlink()
    shutil.rmtree(three_cells[1].path)
    cell_file(project.tables, "requests", three_cells[2]).unlink()
    assert project.convert() == ["50/plain", "200/plain"]
    project.analyse()
    file = cell_file(project.tables, "requests", three_cells[0])
    file.write_bytes(file.read_bytes()[:-1])
    assert project.convert() == ["50/plain"]
    assert project.row("SELECT count(*) n FROM requests")["n"] == 500
    assert project.rows("SELECT DISTINCT rate FROM runs ORDER BY 1") == [{"rate": 50.0}, {"rate": 200.0}]


def test_another_canonical_name_reads_the_cell_again(project, three_cells):
    project.aliases["plain"] = "bare"
    assert len(project.convert()) == 3
    assert project.row("SELECT DISTINCT variant FROM requests") == {"variant": "bare"}


def test_another_version_of_the_tables_reads_all_again(project, three_cells, monkeypatch):
    monkeypatch.setattr(cell, "VERSION", 0)
    assert len(project.convert()) == 3


def test_a_broken_manifest_reads_all_again(project, three_cells):
    layout.manifest_file(project.tables, three_cells[0].campaign).write_text('{"version": [1, 1], "cells": 5}')
    assert len(project.convert()) == 3


def test_an_interrupted_conversion_is_not_taken_for_done(project, three_cells, monkeypatch):
    (three_cells[0].path / "4.results.json.zst").write_bytes(RUN)
    (three_cells[1].path / "4.results.json.zst").write_bytes(RUN)
    with monkeypatch.context() as patch:
        patch.setattr("loadstone.tables.convert._write_parts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            project.convert()
    assert project.convert() == ["50/plain", "100/plain"]


@pytest.mark.parametrize("whole", [False, True], ids=["a file", "a cell"])
def test_what_vanishes_between_listing_and_reading_is_named(project, three_cells, whole):
    """What is to be read is told before any of it is read; that moment is used."""
    shutil.rmtree(project.tables)
    cell = three_cells[1]

    def remove(text: str) -> None:
        if text.startswith("reading "):
            shutil.rmtree(cell.path, ignore_errors=True) if whole else (cell.path / "1.results.json.zst").unlink(True)

    convert_campaign(cell.campaign, project.tables, lambda _, folder: folder, workers=1, log=remove)
    project.analyse()
    named = {row["source"].rpartition("/")[2] for row in project.rows("FROM problems") if "No such" in row["problem"]}
    assert "1.results.json.zst" in named
    excluded = project.rows("SELECT run FROM runs WHERE rate = 100 AND excluded ORDER BY run")
    assert [row["run"] for row in excluded] == ([1, 2, 3] if whole else [1])
    assert project.convert() == ([] if whole else ["100/plain"])
    project.analyse()
    counting = project.rows("SELECT run FROM runs WHERE rate = 100 AND NOT excluded ORDER BY run")
    assert [row["run"] for row in counting] == ([] if whole else [2, 3])
    assert project.row("SELECT count(*) AS n FROM runs WHERE rate <> 100")["n"] == 6


def test_worker_processes_give_the_same_tables(project, three_cells, monkeypatch):
    expected = project.rows("SELECT * FROM requests ORDER BY rate, run, seq")
    shutil.rmtree(project.tables)
    monkeypatch.setattr("loadstone.tables.convert._MIN_POOL_WORK_S", 0.0)
    assert len(project.convert(workers=2)) == 3
    assert project.rows("SELECT * FROM requests ORDER BY rate, run, seq") == expected
