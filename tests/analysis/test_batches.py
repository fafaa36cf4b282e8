"""Queries over several cells at once: the same tables as one cell at a time, whatever cells are computed together."""

import base64
import hashlib
import json
import shutil

import duckdb
import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis import replicates, run_requests
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.errors import LoadstoneError
from loadstone.report.queries import querying
from loadstone.tables import database
from support import rawfiles
from support.rawfiles import TIMESTAMP, write_cell

ONE_RUN = {"testOptions": {"rate": "100", "duration": "1s"}, "runs": 1}
USERS = {"testMode": "k6", "generator": {"name": "k6"}, "loadModel": "closed", "testOptions": {}}


def digests(project) -> dict[str, str]:
    return {
        path.relative_to(project.tables).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in project.tables.rglob("*.parquet")
    }


def k6(latency_ms: float, *, metric: str = "http_req_duration", status: str = "200", group: str = "") -> bytes:
    """50 requests of a k6 result."""
    points = []
    for second in range(50):
        tags = {"status": status, "group": group} | ({} if group else {"scenario": "default"})
        data = {"time": f"2026-11-21T11:00:{second:02d}.5Z", "value": latency_ms + second / 100, "tags": tags}
        points.append(json.dumps({"metric": metric, "type": "Point", "data": data}).encode() + b"\n")
    return b"".join(points)


def as_csv(latencies_ns: list[int]) -> bytes:
    body = base64.b64encode(b"x").decode()
    sent = (rawfiles.START_NS + n * 10_000_000 for n in range(len(latencies_ns)))
    return "".join(
        f"{at},200,{latency},0,5,,{body},,{n},GET,http://x/,\n"
        for n, (at, latency) in enumerate(zip(sent, latencies_ns, strict=True))
    ).encode()


def test_folders_of_one_rate_with_a_run_of_the_same_number(project) -> None:
    for rate, least_ns in (("100", 1_000_000), ("100.0", 9_000_000)):
        lines = rawfiles.lines([least_ns + n for n in range(100)])
        write_cell(project.archive, {"1.results.json": lines}, rate=rate, **ONE_RUN)
    project.make()
    figures = project.rows("SELECT n_requests, mean_ns FROM run_figures ORDER BY mean_ns")
    assert [(row["n_requests"], row["mean_ns"]) for row in figures] == [(100, 1_000_049.5), (100, 9_000_049.5)]
    reasons = [row["exclusions"] for row in project.rows("SELECT exclusions FROM runs")]
    assert [[each["code"] for each in run] for run in reasons] == [["same_number"]] * 2


@pytest.mark.parametrize("requests", [1, 150, 200_000])
def test_tables_do_not_depend_on_what_is_computed_together(project, monkeypatch, requests) -> None:
    """Cells have other streams than others, and excluded runs, whose requests are repeated."""
    monkeypatch.setattr(run_requests, "_BATCH", requests)
    monkeypatch.setattr(run_requests, "_LARGE", 0 if requests == 1 else 2_000_000)
    random = np.random.default_rng(5)
    for variant, streams in (("a", ["", "req_0.presidio."]), ("b", ["", "presidio.", "req_0.presidio."]), ("c", [""])):
        files = {}
        for run in (1, 2, 3):
            for stream in streams:
                lines = rawfiles.lines(random.integers(1_000_000, 9_000_000, 100).tolist())
                files[f"{run}.{stream}results.json"] = lines + (
                    b"".join(lines.splitlines(True)[:9]) if variant == "c" else b""
                )
        write_cell(project.archive, files, variant=variant, runs=3)
        project.make()  # so that cells are computed one by one, and then
    grown = digests(project)
    shutil.rmtree(project.tables)
    project.make()  # several at once
    assert digests(project) == grown
    monkeypatch.setattr(run_requests, "_BATCH", 200_000)
    monkeypatch.setattr(run_requests, "_LARGE", 2_000_000)
    shutil.rmtree(project.tables)
    project.make()
    assert digests(project) == grown


def test_a_comparison_without_one_run_of_a_cell_that_has_a_run_without_measured_requests(project) -> None:
    files = {"1.k6.json": k6(2), "2.k6.json": k6(2), "3.k6.json": k6(900), "4.k6.json": k6(2, group="::setup")}
    write_cell(project.archive, files, rate="20", runs=4, **USERS)
    project.make()
    about = {"id": "c", "title": "c", "app": "demo", "hosts": ("here",), "timestamps": (TIMESTAMP,)}
    found = compare(
        Comparison(**about, exclude=("*/3.*",)), list(archive.campaigns(project.archive)), project.tables, Settings()
    )
    assert [run["run"] for run in found.valid] == [1, 2, 4]
    row = project.row("SELECT all_raw_data_n_runs, n_requests, all_raw_data_mean_ns FROM comparisons")
    assert (row["all_raw_data_n_runs"], row["n_requests"]) == (2, 100)
    assert row["all_raw_data_mean_ns"] == pytest.approx(2_245_000)


def test_an_excluded_run_is_read_only_if_asked_for(project) -> None:
    lines = rawfiles.lines([5_000_000] * 100)
    write_cell(project.archive, {"1.results.json": lines, "2.results.json": lines}, runs=2)
    project.make()
    files = list(map(str, (project.tables / "requests").rglob("*.parquet")))
    with database.open_memory() as connection:
        runs = [run | {"excluded": run["run"] == 1} for run in project.rows("SELECT * FROM runs ORDER BY run")]
        run_requests.select(connection, [run_requests.Pool(files, runs)])
        for with_excluded, series in ((False, [1]), (True, [0, 1])):
            found = run_requests.read(connection, files, [None], with_excluded=with_excluded)
            assert [number for number, _ in found] == series


@pytest.mark.parametrize(("metric", "status"), [("grpc_req_duration", "0"), ("ws_session_duration", "101")])
def test_success_of_other_protocols_is_no_failure_in_comparisons(project, metric, status) -> None:
    write_cell(project.archive, {"1.k6.json": k6(2, metric=metric, status=status)}, runs=1, **USERS)
    project.make()
    about = {"id": "c", "title": "c", "app": "demo", "hosts": ("here",), "timestamps": (TIMESTAMP,)}
    comparison = Comparison(**about, allow=frozenset({"evidence", "protocols"}))
    compare(comparison, list(archive.campaigns(project.archive)), project.tables, Settings())
    row = project.row("SELECT error_fraction, error_0_fraction FROM comparisons")
    assert (row["error_fraction"], row["error_0_fraction"] or 0) == (0, 0)
    assert project.row("SELECT error_fraction FROM cells")["error_fraction"] == 0


def test_latencies_that_no_float_holds_exactly(project) -> None:
    latencies = [2**53 + 1 + 2 * n for n in range(100)]
    write_cell(project.archive, {"1.results.csv": as_csv(latencies)}, runs=1)
    project.make()
    row = project.row("SELECT min_ns, max_ns, mean_ns FROM run_figures")
    assert (row["min_ns"], row["max_ns"]) == (float(latencies[0]), float(latencies[-1]))
    assert row["mean_ns"] == pytest.approx(sum(latencies) / 100, rel=1e-15)


@pytest.mark.parametrize("year", [1930, 2120])
def test_one_time_of_another_century(project, year) -> None:
    lines = [json.loads(line) for line in rawfiles.lines([5_000_000] * 100).splitlines()]
    lines[99 if year > 2000 else 0]["timestamp"] = f"{year}-11-21T11:00:00Z"
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    write_cell(project.archive, {"1.results.json": content}, **ONE_RUN)
    project.make()
    assert project.row("SELECT n_requests FROM cells")["n_requests"] == 100


def test_a_table_of_requests_that_is_damaged_anywhere_is_named(project) -> None:
    write_cell(project.archive, {"1.results.json": rawfiles.lines([5_000_000] * 100)}, **ONE_RUN)
    project.make()
    (path,) = (project.tables / "requests").rglob("*.parquet")
    whole, errors = path.read_bytes(), []
    for place in range(5, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            project.analyse()
        except LoadstoneError as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert [text for text in errors if "a table cannot be read" not in text or str(path.parent) not in text] == []


def test_a_machine_without_memory_is_not_a_damaged_table(project, monkeypatch) -> None:
    """Otherwise the error would say to remove a sound table."""

    def full(*_) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block")

    write_cell(project.archive, {"1.results.json": rawfiles.lines([5_000_000] * 100)}, **ONE_RUN)
    monkeypatch.setattr(replicates, "replicate", full)
    with pytest.raises(duckdb.OutOfMemoryException):
        project.make()


def test_means_of_long_latencies_are_exact(project) -> None:
    """Their sum is beyond 2^53 ns."""
    random = np.random.default_rng(8)
    runs = [random.integers(10**14, 9 * 10**14, 1300) for _ in range(2)]
    write_cell(project.archive, {f"{n}.results.csv": as_csv(own.tolist()) for n, own in enumerate(runs, 1)}, **ONE_RUN)
    project.make()
    row = project.row("SELECT mean_ns, ok_mean_ns, run_mean_ns FROM cells_all")
    pooled = np.concatenate(runs).tolist()
    assert row["mean_ns"] == row["ok_mean_ns"] == sum(pooled) / len(pooled)
    assert row["run_mean_ns"] == pytest.approx(sum(sum(own.tolist()) / own.size for own in runs) / 2, rel=1e-15)


def test_runs_of_the_same_number_in_two_folders_are_not_in_the_run_inspector(project) -> None:
    for rate, least_ns in (("100", 1_000_000), ("100.0", 9_000_000)):
        runs = (1, 2) if rate == "100" else (1,)
        files = {f"{run}.results.json": rawfiles.lines([least_ns + n for n in range(100)]) for run in runs}
        write_cell(project.archive, files, rate=rate, **ONE_RUN)
    project.make()
    with querying(project.tables, None) as queries:
        assert [row["run"] for row in queries.rows("page_run_numbers", rates=[100.0])] == [2]
