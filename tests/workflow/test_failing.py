"""Sweeps whose target fails now and then: they go on, try again, stop within their budget, and say what is missing."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import duckdb
import pytest
from conftest import PROJECT
from support.checkout import Checkout, free_ports

REFRESH = '<meta http-equiv="refresh"'


@pytest.fixture
def checkout(pristine: Path, tmp_path: Path) -> Checkout:
    return Checkout(pristine, tmp_path / "checkout", runs=3, variants=["steady", "flaky"], rates=[100])


def declare(checkout: Checkout, steady: str = "", flaky: str = "", slow: str = "0", **sweep: int) -> Checkout:
    """Open a sweep of two little servers whose starts of these numbers fail."""
    processes, variants = {}, {}
    for (name, failing), port in zip({"steady": steady, "flaky": flaky}.items(), free_ports(2), strict=True):
        folder = checkout.path / "served" / name
        folder.mkdir(parents=True)
        server = [sys.executable, str(PROJECT / "tests/support/server.py"), str(port), str(folder)]
        url = f"http://127.0.0.1:{port}"
        command = [*server, "--slow-start", slow, *(["--fail-starts", failing] if failing else [])]
        processes[name] = {"command": command, "port": port, "ready": f"{url}/ready"}
        expect = {"status": 200, "body_contains": "the page"}
        variants[name] = {"url": f"{url}/page", "processes": [name], "expect": expect}
    checkout.configure(sweep=sweep, target={"processes": processes, "variants": variants})
    checkout.run("--cores", "1", "open")
    return checkout


def failed(checkout: Checkout) -> dict[str, int]:
    """Variant -> how many tries are recorded that gave no result."""
    records = [file.parent.name for file in checkout.archive.rglob("*.failure.*.json")]
    return {name: records.count(name) for name in sorted(set(records))}


def rows(checkout: Checkout, query: str) -> list[tuple]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
            return database.sql(query).fetchall()


def progress(checkout: Checkout) -> str:
    return (checkout.path / "reports/progress.html").read_text()


def test_failing_runs_are_collected_at_the_end(checkout: Checkout) -> None:
    declare(checkout, flaky="1,3")
    output = checkout.run("--cores", "all")
    assert len(checkout.results()) == 6
    assert (checkout.campaign / "completion_time.txt").exists()
    assert failed(checkout) == {"flaky": 2}
    assert output.count("[again, ") == 2 and "1 failed so far" in output
    assert re.search(r"\[6 of 6\] (steady|flaky) at 100/s, run 3; about \d+ s left, until \d\d:\d\d", output)
    assert rows(checkout, "SELECT variant, nth, collected FROM failures") == [("flaky", 1, True)] * 2
    assert rows(checkout, "SELECT count(*), count(*) FILTER (WHERE excluded) FROM runs") == [(6, 0)]
    assert rows(checkout, "SELECT problem FROM problems WHERE run IS NOT NULL") == []
    page = progress(checkout)
    assert "All 6 planned runs collected" in page and REFRESH not in page
    index = (checkout.path / "reports/index.html").read_text()
    assert "Progress of the last sweep" not in index  # the campaign is closed
    (campaign_page,) = (checkout.path / "reports/campaigns").glob("*.html")
    assert "2 failed attempts" in campaign_page.read_text()


def test_what_fails_for_good_is_listed_and_the_rest_stays(checkout: Checkout) -> None:
    declare(checkout, flaky="all", give_up_after=9)
    output = checkout.run("--cores", "all", expect=1)
    assert len(checkout.results()) == 3
    assert failed(checkout) == {"flaky": 6}
    assert "3 of 6 planned runs have no result" in output
    for run in (1, 2, 3):
        assert f"run {run} of flaky at 100/s: failed twice; starting the target: the process 'flaky' ended" in output
    assert "Traceback" not in output
    page = progress(checkout)
    assert "Stopped: the command ended with an error. 3 planned runs missing." in page
    assert REFRESH not in page
    before = checkout.contents()
    output = checkout.run("--cores", "all", "report")
    assert "3 of 6 planned runs not collected (3 of them failed)" in output
    assert rows(checkout, "SELECT count(*), count(DISTINCT run) FROM failures WHERE NOT collected") == [(6, 3)]
    assert [run for (run,) in rows(checkout, "SELECT run FROM problems WHERE run IS NOT NULL ORDER BY run")] == [
        1,
        2,
        3,
    ]
    assert 'href="progress.html">Progress of the last sweep</a>' in (checkout.path / "reports/index.html").read_text()
    assert checkout.contents() == before
    assert checkout.jobs("--cores", "all", "attacks")["collect"] == 3
    checkout.configure(sweep={"retries": 0})  # not part of the plan
    assert "is still open with 3 runs missing" in checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks", expect=1)
    assert failed(checkout) == {"flaky": 9}
    assert before.items() <= checkout.contents().items()


def test_a_target_that_never_works_ends_soon(checkout: Checkout) -> None:
    declare(checkout, steady="all", flaky="all")
    for _ in range(2):  # the next invocation has a budget of its own
        before = sum(failed(checkout).values())
        output = checkout.run("--cores", "all", expect=1)
        assert sum(failed(checkout).values()) == before + 3
        assert "3 consecutive runs failed, so the sweep stops here (sweep.give_up_after)" in output
        assert output.count("no licence today") >= 3
    assert checkout.results() == []
    assert "no licence today" in progress(checkout) and REFRESH not in progress(checkout)


def test_killed_half_way_the_page_says_so_and_the_next_command_goes_on(checkout: Checkout) -> None:
    declare(checkout, flaky="1,2", slow="0.5")
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not (checkout.results() and failed(checkout)):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.wait_idle()
    assert REFRESH in progress(checkout)
    records = {file: file.read_bytes() for file in checkout.archive.rglob("*.failure.*.json")}
    checkout.run("--cores", "all", "report")
    assert "Stopped: the command was killed after" in progress(checkout) and REFRESH not in progress(checkout)
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 6
    assert "All 6 planned runs collected" in progress(checkout)
    assert all(file.read_bytes() == content for file, content in records.items())
    events = [json.loads(line) for line in (checkout.path / "results/.collected/.sweep.jsonl").open()]
    assert [event["event"] for event in events].count("end") == 1


def test_ctrl_c_stops_the_page(checkout: Checkout) -> None:
    declare(checkout, slow="0.5")
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not checkout.results():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=600)
    checkout.wait_idle()
    assert "Stopped: the command was interrupted. " in progress(checkout) and REFRESH not in progress(checkout)
    assert "index.html" not in progress(checkout)  # there is none yet


def test_a_page_that_cannot_be_written_costs_no_run(checkout: Checkout) -> None:
    declare(checkout, steady="1")
    (checkout.path / "reports/progress.html").mkdir()
    output = checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 6
    assert "progress.html cannot be written" in output
