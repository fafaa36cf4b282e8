"""During the load too, no redirect leads to a host of an external target that nobody allowed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import pytest
from loadstone.archive import Cell
from loadstone.collect import collect_run, sweep
from loadstone.collect.generators import k6
from loadstone.config import check
from loadstone.config.connection import Connection
from support.bench import RATE
from support.generators import require
from tables.tabling import Project

CONFIRMED = 8  # answers before the first redirect: what identifies the target gets none


class Redirecting(BaseHTTPRequestHandler):
    """Answers, then redirects to `location`."""

    protocol_version = "HTTP/1.1"
    location, seen = "", 0

    def do_GET(self) -> None:
        type(self).seen += 1
        body = b"the page"
        self.send_response(200 if self.seen <= CONFIRMED or self.path == "/elsewhere" else 302)
        if self.seen > CONFIRMED:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    handler = type("Handler", (Redirecting,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


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
    server.RequestHandlerClass.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, generator, server.server_port)
    failed = [error for code, error in found if code == 0]
    assert len(found) == RATE and failed
    assert all("it redirects to unlisted.invalid, which is not in target.allow" in error for error in failed)


@pytest.mark.parametrize("generator", ["k6", "artillery"])
def test_other_generators_follow_no_redirect(server, tmp_path: Path, generator: str) -> None:
    require(generator)
    server.RequestHandlerClass.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, generator, server.server_port)
    assert len(found) == RATE and {code for code, _ in found} <= {200, 302} and 302 in {code for code, _ in found}


def test_a_redirect_on_the_same_machine_is_followed(server, tmp_path: Path) -> None:
    server.RequestHandlerClass.location = f"http://localhost:{server.server_port}/elsewhere"
    found = collected(tmp_path, "vegeta", server.server_port)
    assert len(found) == RATE and {code for code, _ in found} == {200}


def test_other_kinds_of_targets_follow_as_before(server, tmp_path: Path) -> None:
    server.RequestHandlerClass.location = "http://unlisted.invalid/victim"
    found = collected(tmp_path, "vegeta", server.server_port, kind="local")
    assert any("no such host" in (error or "") or "lookup" in (error or "") for _, error in found)


def test_hosts_are_passed_on_where_they_are_limited() -> None:
    assert "hosts" not in Connection().settings()
    assert Connection(redirect_hosts=()).settings() == {"hosts": []}
