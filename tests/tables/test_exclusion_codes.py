"""Why runs are excluded is a closed set of codes, and decisions follow from codes and values, never from texts."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from loadstone import archive
from loadstone.report.queries import querying
from loadstone.tables import convert, exclusion, schema
from loadstone.tables.database import excluded_runs
from loadstone.tables.schema import TABLES
from support import foreign, rawfiles
from support.rawfiles import lines, write_cell
from tables.test_foreign import of

RUN = rawfiles.compress(lines([2_000_000] * 100))
ARTILLERY = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5])
TAG = {"tag": "INVALID", "variant": "tagged", "reason": "not loaded"}
NARROW = pa.schema([pa.field("min_ns", pa.int8()) if each.name == "min_ns" else each for each in TABLES["summaries"]])
CONSTANTS = {value for name, value in vars(exclusion).items() if name.isupper() and str(value).isidentifier()}
TEXTS = {
    "unreadable": "1.results.json.zst is truncated: it is empty",
    "outside_archive": "2.results.json.zst is a link that leads out of the archive and was not followed; "
    "`archive_links` can allow the place",
    "not_converted": "broken could not be converted: ValueError: a reader's mistake",
    "metadata_unreadable": "metadata.json is not JSON",
    "metadata_differ": "metadata.json gives the rate as 50.0, but the folder name says '100'",
    "changed": "1.results.json.zst has changed since it was collected (its checksum differs from 1.sha256)",
    "not_planned": "metadata.json does not plan this run, and extension.1.json is missing",
    "no_such_phase": "1.artillery.json holds no request of the phase 'Ramp'",
    "figure_too_large": "1.vegeta.txt holds a figure that is too large for its column",
    "report_unsound": "1.vegeta.txt can't be right: its p50 is 8.953 ms, its p90 7.572 ms",
    "load_differs": "1.vegeta.txt says that the attack took 1 s; by the metadata, 60 s",
    "no_results": "warmed has no results",
    "other_generator": "1.hey.csv is a file of hey, but the run is of vegeta",
    "other_load_model": "1.artillery.json says that the load is open; by the metadata, it is closed",
    "request_count": "99 requests instead of 1,000",
    "repeated_requests": "2 requests appear more than once",
    "same_number": "another folder of the same rate and variant holds a run of this number",
    "linked": f"is a link to demo/here/{rawfiles.TIMESTAMP}/100/twice/1.results.json.zst, which is another run",
    "several_loads": "there are runs of open load by artillery and open load by vegeta under this rate and variant, "
    "which are never pooled",
    "several_protocols": "runs of this rate and variant were sent over http1 and http2, which are never pooled",
    "tagged": "tagged INVALID: not loaded",
}


def negotiated(protocol: str) -> bytes:
    return json.dumps({"identity": {"negotiated": {"protocol": protocol}}}).encode()


def write(root: Path, outside: Path) -> None:
    """An archive with a run for each code, under a variant named after what is wrong."""

    def cell(variant: str, files: dict[str, bytes], **changes) -> Path:
        return write_cell(root, files, variant=variant, **changes).path

    cell("empty", {"1.results.json.zst": b""})
    outside.write_bytes(RUN)
    (cell("outside", {"1.results.json.zst": RUN}) / "2.results.json.zst").symlink_to(outside)
    cell("broken", {"1.results.json.zst": RUN})
    (cell("nonsense", {"1.results.json.zst": RUN}) / "metadata.json").write_bytes(b"{")
    cell("differing", {"1.results.json.zst": RUN}, testOptions={"duration": "2s", "rate": "50"})
    cell("changed", {"1.results.json.zst": RUN, "1.sha256": b"0" * 64 + b"  1.results.json.zst\n"})
    cell("phase", {"1.artillery.json": ARTILLERY}, **of("artillery", "open", testOptions={}, measuredPhase="Ramp"))
    for variant, said, instead, duration in (
        ("large", "", "", "1s"),
        ("unsound", "4.953ms", "8.953ms", "1s"),
        ("lasted", "", "", "60s"),
    ):
        report = foreign.VEGETA.replace(said, instead).encode()
        cell(
            variant, {"1.vegeta.txt": report}, **of("vegeta", "open", testOptions={"rate": "100", "duration": duration})
        )
    cell("warmed", {"1.warmups.json.zst": RUN})
    cell("hey", {"1.hey.csv": foreign.HEY.encode()}, generator={"name": "vegeta"}, loadModel="open")
    cell("users", {"1.artillery.json": ARTILLERY}, **of("artillery", "closed"))
    write_cell(root, {"1.results.json.zst": rawfiles.compress(lines([1] * 99))}, rate="1000", variant="short")
    for n, rate in enumerate(("20", "20.0")):
        write_cell(root, {"1.results.json.zst": rawfiles.compress(lines([n] * 20, 20.0))}, rate=rate, variant="same")
    cell("repeated", {"1.results.json": lines([1] * 98) + rawfiles.line(5) + rawfiles.line(5)})
    (cell("twice", {"1.results.json.zst": RUN}) / "2.results.json.zst").symlink_to("1.results.json.zst")
    cell("istio", {"1.results.json.zst": rawfiles.compress(lines([3] * 100))})
    cell("envoy", {"2.artillery.json": ARTILLERY}, **of("artillery", "open"))  # the same variant
    runs = {f"{n}.results.json.zst": rawfiles.compress(lines([n] * 100)) for n in (1, 2)}
    cell("protocols", runs | {"1.run.json": negotiated("http1"), "2.run.json": negotiated("http2")})
    cell("tagged", {"1.results.json.zst": RUN})
    planned = cell("planned", {"4.results.json.zst": rawfiles.compress(lines([4] * 100))})
    (planned.parent.parent / "completion_time.2.txt").touch()


@pytest.fixture
def made(project, tmp_path, monkeypatch):
    """The archive with its tables."""
    read_run = convert.read_run

    def read(reading, *run):
        if reading.cell.variant_dir == "broken":
            raise ValueError("a reader's mistake")
        with monkeypatch.context() as patch:
            if reading.cell.variant_dir == "large":  # no reader takes figures that its columns can't hold
                patch.setitem(schema.TABLES, "summaries", NARROW)
            read_run(reading, *run)

    monkeypatch.setattr(convert, "read_run", read)
    write(project.archive, tmp_path / "elsewhere")
    project.convert()
    project.analyse([TAG], ["INVALID"])
    return project


def test_each_code_has_a_text_and_no_other_code_excludes(made):
    found = {}
    for run in made.rows("SELECT excluded, exclusions, exclusion_reason FROM runs"):
        reasons = exclusion.of_row(run)
        assert run["excluded"] is bool(reasons)
        assert run["exclusion_reason"] == exclusion.text(reasons)
        found |= {each.code: each.text for each in reasons}
    assert found == TEXTS
    assert set(TEXTS) == set(exclusion.CODES) == CONSTANTS


def test_runs_of_the_same_number_are_in_no_figure(project):
    """Requests have no folder, so two such runs would count each request twice."""
    for n, rate in enumerate(("20", "20.0")):
        files = {"1.results.json.zst": rawfiles.compress(lines([n + 1] * 20, 20.0))}
        if n:
            files["2.results.json.zst"] = rawfiles.compress(lines([7] * 20, 20.0))
        write_cell(project.archive, files, rate=rate, variant="same")
    project.make()
    for table in ("cells", "cells_all"):
        assert [tuple(row.values()) for row in project.rows(f"SELECT n_runs, n_requests, mean_ns FROM {table}")] == [
            (1, 20, 7.0)
        ]


def decisions(project) -> tuple:
    """What follows from the reasons: which runs are excluded and how they are grouped, without any text."""
    found = list(archive.campaigns(project.archive))
    with querying(project.tables, found) as queries:
        groups = queries.rows("page_exclusions", shown=5)
    return (
        project.rows("SELECT variant, rate, run, excluded, exclusions FROM runs ORDER BY ALL"),
        project.rows("SELECT variant, rate, n_runs, n_excluded FROM cells ORDER BY ALL"),
        sorted((group["n_runs"], repr(group["examples"])) for group in groups),
        [line.partition("(")[0] for line in excluded_runs(project.tables, found)],
    )


def test_decisions_do_not_depend_on_texts(made, monkeypatch):
    before = decisions(made)
    assert len(before[2]) >= len(TEXTS)
    monkeypatch.setattr(exclusion, "_TEXTS", dict.fromkeys(exclusion.CODES, lambda _: "parce que"))
    made.analyse([TAG], ["INVALID"])
    texts = [row["exclusion_reason"] for row in made.rows("SELECT exclusion_reason FROM runs WHERE excluded")]
    assert all(text.endswith("parce que") for text in texts)
    assert decisions(made) == before


def test_the_log_names_the_reason_of_most_runs(project):
    """By code and values, however the texts of a code read."""
    files = {f"{run}.results.json.zst": rawfiles.compress(lines([run] * 99)) for run in (1, 2, 3)}
    write_cell(project.archive, files, rate="1000")
    write_cell(project.archive, {"1.results.json.zst": b""})
    project.make()
    assert excluded_runs(project.tables, list(archive.campaigns(project.archive))) == [
        f"demo/here/{rawfiles.TIMESTAMP}: 4 of 4 runs excluded (3 of them: 99 requests instead of 1,000)"
    ]
