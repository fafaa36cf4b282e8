"""Table senders: of several generators of one run, how late each was and whether they kept time with each other."""

import json
from typing import Any

import numpy as np
import pytest
from support.rawfiles import START_NS, compress, line, write_cell
from tables.tabling import Project

RNG = np.random.default_rng(7)
MS = 1_000_000
RATE, N = 1000, 2000


def run(generators: int, late_ns: dict[int, int] | None = None, ahead_ns: dict[int, int] | None = None) -> bytes:
    """Requests sent up to 50 us late by turns; `late_ns`: all of a generator's by so much, `ahead_ns`: its clock."""
    content = []
    for seq in range(N):
        number = seq % generators
        at_ns = START_NS + seq * MS + int(RNG.integers(0, 50_000))
        at_ns += (late_ns or {}).get(number, 0) + (ahead_ns or {}).get(number, 0)
        content.append(line(seq, 2 * MS + seq, sent_ns=at_ns, attack=f"generator-{number}"))
    return compress(b"".join(content))


def record(clocks: dict[int, tuple[int, int, int]]) -> bytes:
    """What a run's record says of each generator's clock: offset, uncertainty and drift."""
    names = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")
    told = [
        {"generator": number, "pod": f"load-{number}", "node": "east", **dict(zip(names, values, strict=True))}
        for number, values in clocks.items()
    ]
    return json.dumps({"generators": told}).encode()


def write(project: Project, generators: int, **files: bytes) -> None:
    named = {name.replace("_", ".") + (".zst" if "results" in name else ""): file for name, file in files.items()}
    named = {f"1.{name}": file for name, file in named.items()}
    generator = {"name": "vegeta", "version": "", "count": generators}
    options = {"rate": str(RATE), "duration": f"{N // RATE}s"}
    write_cell(project.archive, named, rate=str(RATE), testOptions=options, generator=generator)


def senders(project: Project) -> list[dict[str, Any]]:
    project.make()
    return project.rows("SELECT * FROM senders ORDER BY run, generator")


def test_each_request_knows_its_generator(project) -> None:
    write(project, 4, results_json=run(4))
    rows = senders(project)
    assert [(row["generator"], row["requests"]) for row in rows] == [(number, N // 4) for number in range(4)]
    assert all(row["lag_max_ns"] < 50_000 and row["start_lag_ns"] < 50_000 for row in rows)
    assert all(row["clock_offset_ns"] is None for row in rows), "they have the clock of this machine"
    assert project.row("SELECT count(*) FILTER (WHERE generator = seq % 4) AS n FROM requests")["n"] == N
    found = project.row("SELECT generators, requests, complete, problems FROM runs")
    assert found == {"generators": 4, "requests": N, "complete": True, "problems": []}
    sending = project.row("SELECT lag_p99_ns, achieved_rate, limited FROM sending")
    assert sending["lag_p99_ns"] < 50_000 and not sending["limited"]
    assert sending["achieved_rate"] == pytest.approx(RATE, rel=0.001)
    assert project.rows("SELECT * FROM suggestions") == []


def test_a_run_of_one_generator_has_none(project) -> None:
    content = compress(b"".join(line(seq, MS, sent_ns=START_NS + seq * MS) for seq in range(N)))
    write(project, 1, results_json=content)
    assert senders(project) == []
    assert project.row("SELECT DISTINCT generator FROM requests")["generator"] is None


def test_an_attack_that_somebody_named_is_no_generator(project) -> None:
    content = b"".join(line(seq, MS, sent_ns=START_NS + seq * MS, attack="generator-three") for seq in range(N))
    write(project, 1, results_json=compress(content))
    assert senders(project) == []


def test_clocks_that_differ_hide_no_lag_and_make_none(project) -> None:
    """The third clock is 80 ms ahead, which is known within 1 ms, and its generator began 3 ms late."""
    write(
        project,
        3,
        results_json=run(3, {2: 3 * MS}, {2: 80 * MS}),
        run_json=record({0: (0, MS, 0), 1: (MS // 10, MS, 0), 2: (80 * MS, MS, MS // 2)}),
    )
    rows = senders(project)
    assert [row["place"] for row in rows] == [f"load-{number} on east" for number in range(3)]
    assert rows[2]["start_lag_ns"] == pytest.approx(3 * MS, abs=200_000)
    assert all(row["lag_max_ns"] < 50_000 for row in rows)
    assert (rows[2]["clock_offset_ns"], rows[2]["clock_uncertainty_ns"], rows[2]["clock_drift_ns"]) == (
        80 * MS,
        MS,
        MS // 2,
    )
    assert not project.row("SELECT limited FROM sending")["limited"], "each counts by its own clock"
    (found,) = project.rows("SELECT kind, tag, run, evidence FROM suggestions")
    assert (found["kind"], found["tag"], found["run"]) == ("unsynchronised generators", "doubtful", 1)
    assert (
        "its 3 generators were not synchronised: their clocks by up to 82.5 ms, the limit is 10 ms" in found["evidence"]
    )
    project.analyse(lag_limit={"apart_ns": 100e6})
    assert project.rows("SELECT * FROM suggestions") == []


def test_one_that_began_late_is_found_on_one_clock(project) -> None:
    write(project, 2, results_json=run(2, {1: 15 * MS}))
    rows = senders(project)
    assert rows[1]["start_lag_ns"] == pytest.approx(15 * MS, abs=100_000)
    (found,) = project.rows("SELECT evidence FROM suggestions")
    assert "their starts by up to 15" in found["evidence"]


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"process": 0, "processor": 1}, "process 0 on processor 1"),
        ({"process": 2, "not_pinned": "why"}, "process 2, not pinned"),
        ({"processor": 1}, "processor 1"),
        ({}, None),
    ],
)
def test_where_each_ran_is_said(project, told: dict[str, Any], place: str | None) -> None:
    record = {"generators": [{"generator": number, **told} for number in range(2)]}
    write(project, 2, results_json=run(2), run_json=json.dumps(record).encode())
    assert [row["place"] for row in senders(project)] == [place] * 2


@pytest.mark.parametrize(
    "told",
    [
        {"generators": 7},
        {"generators": [None, {"generator": "0"}, {"generator": True}, {"generator": -1}]},
        {"generators": [{"generator": 0, "clock_offset_ns": 1e300, "pod": ["x"], "processor": {}}]},
        {"generators": [{"generator": 0, "clock_offset_ns": 1 << 80, "clock_uncertainty_ns": "many"}]},
    ],
)
def test_what_a_record_says_wrongly_is_not_taken(project, told: dict[str, Any]) -> None:
    write(project, 2, results_json=run(2), run_json=json.dumps(told).encode())
    rows = senders(project)
    assert len(rows) == 2 and {row["clock_offset_ns"] for row in rows} == {None}
