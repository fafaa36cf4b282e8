"""What a run's record says of its target: rows, problems of the run, and tags that are proposed."""

import json
from typing import Any

import pytest
from support.rawfiles import compress, lines, write_cell

RUN = compress(lines([2_000_000] * 100))
OOM = {"kind": "oom", "object": "shop/web-1", "container": "app", "reason": "OOMKilled", "text": "killed", "count": 2}
RESTART = {"kind": "restart", "object": "shop/web-2", "container": "app", "text": "restarted", "count": 1}
WARNING = {"kind": "warning", "object": "Pod shop/web-1", "reason": "Unhealthy", "text": "probe failed", "count": 7}


def record(incidents: Any, **more: Any) -> bytes:
    return json.dumps({"run": 1, "incidents": incidents, **more}).encode()


def write(project, *records: bytes) -> None:
    files = {f"{run}.results.json.zst": RUN for run in range(1, len(records) + 1)}
    write_cell(project.archive, files | {f"{run}.run.json": content for run, content in enumerate(records, 1)})
    project.make()


def told(project) -> list[tuple[Any, ...]]:
    query = "SELECT run, tag, evidence, lines FROM suggestions WHERE kind = 'target problem' ORDER BY run"
    return [tuple(row.values()) for row in project.rows(query)]


def test_incidents_are_rows_and_the_bad_ones_problems_and_suggestions(project) -> None:
    write(project, record([OOM, WARNING, RESTART]), record([WARNING]), record([]))
    rows = project.rows("SELECT run, kind, object, container, reason, text, count FROM incidents ORDER BY run, kind")
    assert [tuple(row.values()) for row in rows] == [
        (1, "oom", "shop/web-1", "app", "OOMKilled", "killed", 2),
        (1, "restart", "shop/web-2", "app", None, "restarted", 1),
        (1, "warning", "Pod shop/web-1", None, "Unhealthy", "probe failed", 7),
        (2, "warning", "Pod shop/web-1", None, "Unhealthy", "probe failed", 7),
    ]
    text = (
        "containers killed for lack of memory: 2 (shop/web-1, container app); "
        "containers restarted: 1 (shop/web-2, container app)"
    )
    problems = {row["run"]: row["problems"] for row in project.rows("SELECT run, problems FROM runs")}
    assert f"1.run.json reports {text}" in problems[1]
    assert not any("run.json" in problem for run in (2, 3) for problem in problems[run])
    assert project.row("SELECT count(*) AS n FROM runs WHERE excluded") == {"n": 0}
    ((run, tag, evidence, line),) = told(project)
    assert (run, tag, evidence) == (1, "doubtful", text)
    assert line.startswith('  - {tag: doubtful, app: "demo", host: "here", timestamp: ')
    assert line.endswith(f'run: "1", reason: "{text}"}}')


def test_a_cell_whose_runs_all_suffer_is_one_suggestion(project) -> None:
    write(project, record([OOM]), record([OOM, RESTART]))
    ((run, tag, evidence, _),) = told(project)
    assert (run, tag) == (None, "doubtful")
    assert evidence.startswith("in both runs, such as run 1: containers killed for lack of memory: 2 (shop/web-1")


def test_many_of_a_kind_are_counted(project) -> None:
    gone = [{"kind": "evicted", "object": f"shop/web-{number}", "text": "low on memory"} for number in range(5)]
    write(project, record(gone))
    ((_, _, evidence, _),) = told(project)
    assert evidence == "pods evicted: 5 (shop/web-0; shop/web-1; shop/web-2; and 2 more)"


def test_what_could_not_be_found_out_is_a_problem_and_no_suggestion(project) -> None:
    write(project, record([{"kind": "unknown", "object": "shop", "text": "it is not known: no answer"}]))
    assert "1.run.json it is not known: no answer" in project.row("SELECT problems FROM runs")["problems"]
    assert told(project) == []


def test_how_many_cpus_the_generator_had(project) -> None:
    cpus = (2, 0.5, None, "2", -1, True)
    write(project, *(record([], sampling={"generator_cpus": each}) for each in cpus), record([], sampling=[]))
    rows = project.rows("SELECT generator_cpus AS cpus FROM runs ORDER BY run")
    assert [row["cpus"] for row in rows] == [2, 0.5, None, None, None, None, None]


def test_how_busy_the_machine_was(project) -> None:
    loads = (0.5, 0, 3, None, "2", -1, True, float("nan"))
    machines = [*({"load_1min": each} for each in loads), {}, []]
    write(project, *(record([], machine=each) for each in machines), record([]))
    rows = project.rows("SELECT load_1min FROM runs ORDER BY run")
    assert [row["load_1min"] for row in rows] == [0.5, 0, 3] + [None] * 8


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b"\xff"])
def test_a_record_that_cannot_be_read_is_a_problem_of_its_run(project, content: bytes) -> None:
    write(project, content)
    (problem,) = [text for text in project.row("SELECT problems FROM runs")["problems"] if "run.json" in text]
    assert problem.startswith("1.run.json is damaged: it is no" if content else "1.run.json is truncated: it is empty")


def test_hostile_incidents(project) -> None:
    odd = [{"kind": "oom", "object": "\ud800<script>", "text": ["no text"], "container": 5, "count": 1e300}, {}, "x", 7]
    write(project, record(odd), record("no list"), record({"kind": "oom"}))
    (row,) = project.rows("SELECT object, text, container, count FROM incidents")
    assert tuple(row.values()) == ("\\ud800<script>", None, None, 1)
