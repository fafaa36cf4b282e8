"""During the load too, no redirect leads to a host of an external target that nobody allowed."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from loadstone.archive import Cell
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.run import collect_run
from loadstone.config import check
from loadstone.config.connection import Connection
from support.bench import RATE
from support.generators import require
from support.standin import Answer, StandIn
from tables.tabling import Project


class Redirecting:
    """A service that answers who asks who it is, and redirects everybody else to `location`."""

    def __init__(self, folder: Path) -> None:
        self.location = ""
        self.standin = StandIn(folder, self._answer)
        self.port = self.standin.port

    def _answer(self, _method: str, path: str, headers: dict[str, str]) -> Answer:
        if headers.get("user-agent") == "loadstone" or path == "/elsewhere":
            return 200, {}, "the page"
        return 302, {"Location": self.location}, ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redirecting]:
    found = Redirecting(tmp_path / "service")
    yield found
    found.standin.close()


def collected(folder: Path, generator: str, port: int, kind: str = "external") -> list[tuple[int, str | None]]:
    """Code and error of every request of one run."""
    variant = {"url": f"http://127.0.0.1:{port}/page", "expect": {"status": 200, "body_contains": "the page"}}
    swept = {"app": "demo", "variants": ["only"], "rates": [RATE], "runs": 1, "duration": "1s", "generator": generator}
    declared = {"archive": str(folder / "archive"), "tables": str(folder / "tables"), "reports": str(folder / "site")}
    target = {"kind": kind, "variants": {"only": variant}} | ({"processes": {}} if kind == "local" else {})
    config = check(declared | {"host": "here", "sweep": swept | {"warmup": {"duration": "0s"}}, "target": target})
    campaign = sweep.open_sweep(config, {}, lambda _: None, k6.script_files(config))
    cell = Cell(campaign, str(RATE), "only")
    collect_run(cell, 1, config["target"], host="here", logs=folder / "logs", log=lambda _: None)
    if generator == "artillery":
        report = json.loads((cell.path / "1.artillery.json").read_bytes())
        codes = {name: count for name, count in report["aggregate"]["counters"].items() if "http.codes." in name}
        return [(int(name.rpartition(".")[2]), None) for name, count in codes.items() for _ in range(count)]
    project = Project(folder)
    project.make()
    files = [str(path) for path in (project.tables / "requests").rglob("*.parquet")]
    rows = duckdb.connect().execute("SELECT code, error FROM read_parquet($files)", {"files": files}).fetchall()
    return [(code, error) for code, error in rows]


@pytest.mark.parametrize("generator", ["vegeta", "serial"])
def test_a_redirect_elsewhere_is_a_failed_request(server, tmp_path: Path, generator: str) -> None:
    server.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, generator, server.port)
    failed = [error for code, error in found if code == 0]
    assert len(failed) == len(found) == RATE
    assert all("it redirects to unlisted.invalid, which is not in target.allow" in error for error in failed)


@pytest.mark.parametrize("generator", ["k6", "artillery"])
def test_other_generators_follow_no_redirect(server, tmp_path: Path, generator: str) -> None:
    require(generator)
    server.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, generator, server.port)
    assert [code for code, _ in found] == [302] * RATE


def test_a_redirect_on_the_same_machine_is_followed(server, tmp_path: Path) -> None:
    server.location = f"http://localhost:{server.port}/elsewhere"
    found = collected(tmp_path, "vegeta", server.port)
    assert len(found) == RATE and {code for code, _ in found} == {200}


def test_other_kinds_of_targets_follow_as_before(server, tmp_path: Path) -> None:
    server.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, "vegeta", server.port, kind="local")
    assert any("no such host" in (error or "") or "lookup" in (error or "") for _, error in found)


def test_hosts_are_passed_on_where_they_are_limited() -> None:
    assert "hosts" not in Connection().settings()
    assert Connection(redirect_hosts=()).settings() == {"hosts": []}
