"""Tries that gave no result: rows of their own, problems while nothing came of them, and never a run."""

import json

from support import rawfiles
from support.rawfiles import lines, write_cell

RUN = rawfiles.compress(lines([2_000_000] * 100))


K6 = """{"metrics": {"http_reqs": {"count": 100, "rate": 100},
 "http_req_duration": {"avg": 2, "min": 1, "med": 2, "max": 3, "p(90)": 3, "p(95)": 3},
 "NAME": {"avg": 2, "min": 1, "med": 2, "max": 3, "p(90)": 3, "p(95)": 3}}}"""


def problems(project) -> list[tuple]:
    return [(row["run"], row["problem"]) for row in project.rows("SELECT run, problem FROM problems ORDER BY run")]


def failure(error="the process 'x' ended", **changes):
    content = {"run": 1, "nth": 1, "phase": "target", "failed": "2026-11-21T13:00:00.5+02:00", "error": error}
    return json.dumps(content | {"evidence": ["Warning: BackOff"]} | changes).encode()


def test_failures_are_a_table_and_in_no_statistic(project):
    files = {"1.results.json.zst": RUN, "1.failure.1.json": failure(), "3.failure.1.json": failure("first")}
    write_cell(project.archive, files | {"3.failure.2.json": failure("second\nand more", phase="test")})
    project.make()
    rows = project.rows("SELECT run, nth, phase, error, evidence, collected FROM failures ORDER BY run, nth")
    assert [tuple(row.values()) for row in rows] == [
        (1, 1, "target", "the process 'x' ended", ["Warning: BackOff"], True),
        (3, 1, "target", "first", ["Warning: BackOff"], False),
        (3, 2, "test", "second\nand more", ["Warning: BackOff"], False),
    ]
    row = project.row("SELECT failed_at, source, variant, rate FROM failures WHERE run = 1")
    assert row["failed_at"].isoformat() == "2026-11-21T11:00:00.500000+00:00"
    assert row["source"].endswith("/1.failure.1.json")
    assert [row["run"] for row in project.rows("SELECT run FROM runs")] == [1]
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 1, "n_excluded": 0}
    run = project.row("SELECT problems, excluded FROM runs")
    assert not run["excluded"] and not any("failed" in text for text in run["problems"])
    assert [run for run, text in problems(project) if "failed" in text] == [3]
    assert dict(problems(project))[3].endswith("/s failed twice and has no result: attack: second")


def test_credentials_in_addresses_of_an_older_or_imported_archive_are_in_no_table(project):
    quoted = 'Get "http://127.0.0.1:1/page?page=7&token=opensesame": context deadline exceeded'
    slow = lines([2_000_000] * 50) + lines([3_000_000] * 50, code=0, error=quoted)
    files = {"1.results.json.zst": rawfiles.compress(slow), "2.failure.1.json": failure(quoted, evidence=[quoted])}
    incident = {"kind": "Pod", "reason": "Unhealthy", "text": quoted, "count": 1}
    files["1.run.json"] = json.dumps({"incidents": [incident]}).encode()
    files["1.k6.summary.json"] = K6.replace("NAME", "http_req_duration{url:http://h/?token=opensesame}").encode()
    cell = write_cell(project.archive, files)
    before = {file: file.read_bytes() for file in cell.path.iterdir()}
    project.make()
    assert {file: file.read_bytes() for file in cell.path.iterdir()} == before
    hidden = quoted.replace("opensesame", "redacted")
    errors = project.rows("SELECT error, error_class, count(*) n FROM requests GROUP BY ALL ORDER BY n, error")
    assert {(row["error"], row["error_class"], row["n"]) for row in errors} == {("", None, 50), (hidden, "timeout", 50)}
    assert project.row("SELECT error, evidence FROM failures") == {"error": hidden, "evidence": [hidden]}
    assert project.row("SELECT text FROM incidents") == {"text": hidden}
    assert any("token=redacted" in row["metric"] for row in project.rows("SELECT metric FROM figures"))
    for table in [row["name"] for row in project.rows("SHOW TABLES")]:
        assert "opensesame" not in str(project.rows(f"FROM {table}")), table


def test_other_names_in_redact_read_all_again(project, monkeypatch):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    project.make()
    assert project.convert() == []
    monkeypatch.setenv("LOADSTONE_REDACT", '{"headers": [], "query": ["page"]}')
    assert project.convert() == ["100/plain"]


def test_a_failure_that_is_no_record_is_a_problem(project):
    damaged = {b"": "is not JSON", b"[1]": "does not say", b'{"error": 3}': "does not say"}
    files = {f"{run}.failure.1.json": content for run, content in enumerate(damaged, 2)}
    odd = failure(failed="yesterday", phase=None, evidence="none", error="\ud800 <b>")
    write_cell(project.archive, {"1.results.json.zst": RUN, "7.failure.1.json": odd} | files)
    project.make()
    found = [(run, text) for run, text in problems(project) if run and run > 1]
    for run, text in enumerate(damaged.values(), 2):
        assert any(of == run and said.startswith(text) for of, said in found)
    row = project.row("SELECT failed_at, phase, error, evidence FROM failures")
    assert row == {"failed_at": None, "phase": None, "error": "\\ud800 <b>", "evidence": []}


def test_a_new_failure_reads_its_own_cell_again_and_no_other(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant="a")
    cell = write_cell(project.archive, {"1.results.json.zst": RUN}, variant="b")
    project.make()
    cell.failure(2, 1).write_bytes(failure())
    assert project.convert() == [f"{cell.rate}/b"]
    assert len(project.rows("FROM failures")) == 1
