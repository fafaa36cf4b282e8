"""Scripts of k6 that call gRPC methods and open WebSocket sessions: against real servers, which time their own part."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT
from loadstone.archive import Cell
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.run import collect_run
from loadstone.readers import FORMATS, Problems
from support.bench import RATE, configured
from support.generators import require
from websockets.http11 import Response
from websockets.sync.server import Server, ServerConnection, serve

DELAY_S = 0.02
PROTO = """
syntax = "proto3";
package echo;
service Echo { rpc Say (Text) returns (Text) {} }
message Text { string text = 1; }
"""
GRPC_SCRIPT = """
import grpc from 'k6/net/grpc';
const { request } = JSON.parse(open(__ENV.LOADSTONE));
const client = new grpc.Client();
client.load([], 'echo.proto');
export default function () {
  if (__ITER === 0) client.connect(request.url.split('/')[2], { plaintext: true });
  client.invoke('echo.Echo/Say', { text: 'hello' });
}
"""
WEBSOCKET_SCRIPT = """
import { WebSocket } from 'k6/websockets';
const { request } = JSON.parse(open(__ENV.LOADSTONE));
export default function () {
  const socket = new WebSocket(request.url.replace('http', 'ws'));
  socket.onopen = () => socket.send('hello');
  socket.onmessage = () => socket.close();
}
"""


class Calls:
    """A gRPC server in a process of its own (`grpc_server.py`): gRPC does not survive that its process forks."""

    def __init__(self, folder: Path, fails: int) -> None:
        self._file = folder / "calls"
        program = str(PROJECT / "tests/support/grpc_server.py")
        self._server = subprocess.Popen([sys.executable, program, str(self._file), str(DELAY_S), str(fails)])
        deadline = time.monotonic() + 30
        while not self._lines():
            assert time.monotonic() < deadline and self._server.poll() is None
            time.sleep(0.05)
        self.port = int(self._lines()[0])

    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def close(self) -> list[float]:
        """Ends it; returns the seconds that each call took."""
        self._server.kill()
        self._server.wait()
        return [float(line) for line in self._lines()[1:]]


def collect(folder: Path, script: str, **variant: Any) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Collect one run; returns its record, its requests and its summary as they are read."""
    require("k6")
    (folder / "script.js").write_text(script)
    (folder / "echo.proto").write_text(PROTO)
    config = configured(folder, "k6", {"file": str(folder / "script.js")}, **variant)
    campaign = sweep.open_sweep(config, {}, lambda _: None, k6.script_files(config))
    cell = Cell(campaign, str(RATE), "only")
    collect_run(
        cell,
        1,
        config["target"],
        host="here",
        logs=folder / "logs",
        log=lambda _: None,
        script=config["sweep"]["script"],
    )
    problems = Problems()
    reader = FORMATS["k6.json"].requests
    assert reader is not None
    rows = [row for batch in reader(cell.path / "1.k6.json.zst", problems) for row in batch.to_pylist()]
    report = FORMATS["k6.summary.json"].report
    assert report is not None
    summary = report(cell.path / "1.k6.summary.json", problems)
    assert problems.texts() == []
    assert summary is not None
    return json.loads((cell.path / "1.run.json").read_text()), rows, summary.summary


@pytest.fixture
def sockets() -> Iterator[tuple[int, list[float]]]:
    took_s: list[float] = []

    def answer(connection: ServerConnection) -> None:
        started = time.perf_counter()
        for message in connection:
            time.sleep(DELAY_S)
            connection.send(message)
        took_s.append(time.perf_counter() - started)

    def health(connection: ServerConnection, request: Any) -> Response | None:
        return connection.respond(HTTPStatus.OK, "the page") if "Upgrade" not in request.headers else None

    with serve(answer, "127.0.0.1", 0, process_request=health) as server:
        assert isinstance(server, Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.socket.getsockname()[1], took_s


def test_calls_of_grpc_are_requests_whose_code_is_the_status(tmp_path: Path) -> None:
    calls = Calls(tmp_path, fails=5)
    record, rows, summary = collect(
        tmp_path,
        GRPC_SCRIPT,
        url=f"http://127.0.0.1:{calls.port}/echo.Echo/Say",
        method="POST",
        headers={"content-type": "application/grpc", "te": "trailers"},
        body="\0\0\0\0\0",
        protocol="h2c",
        expect={"status": 200, "headers": {"content-type": "application/grpc"}},
    )
    sent = calls.close()[3:]  # after the identity check
    assert len(rows) == len(sent) == summary["requests"] in (RATE, RATE + 1)  # a last one may be due as it ends
    assert {row["code"] for row in rows} == {0, 14}
    failed = [row for row in rows if row["code"] == 14]
    assert {row["error"] for row in failed} <= {"gRPC status 14 UNAVAILABLE", "not now"} and len(failed) == 4
    assert all(row["ok"] == (row["code"] == 0) for row in rows)
    measured_s = sorted(row["latency_ns"] / 1e9 for row in rows)
    for own_s, client_s in zip(sorted(sent), measured_s, strict=True):
        assert own_s < client_s
    assert measured_s[len(rows) // 2] - sorted(sent)[len(rows) // 2] < 0.02
    assert record["negotiated"] == [{"protocol": "http2"}]
    assert record["identity"]["negotiated"] == {"protocol": "h2c"}


def test_sessions_of_websockets_are_requests(tmp_path: Path, sockets: tuple[int, list[float]]) -> None:
    port, took_s = sockets
    record, rows, summary = collect(tmp_path, WEBSOCKET_SCRIPT, url=f"http://127.0.0.1:{port}/page")
    assert len(rows) == len(took_s) == summary["requests"] in (RATE, RATE + 1)
    assert {row["code"] for row in rows} == {101}
    assert min(row["latency_ns"] for row in rows) >= DELAY_S * 1e9
    assert all(row["ok"] for row in rows)
    assert record["identity"]["negotiated"] == {"protocol": "http1"}
