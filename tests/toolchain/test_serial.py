"""The program `serial`: one request after another, in vegeta's format."""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest


class Server(ThreadingHTTPServer):
    """Counts the requests it answers and how many it answers at once."""

    daemon_threads = True
    lock: ClassVar = threading.Lock()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str, str | None, bytes]] = []
        self.connections: set[tuple[str, int]] = set()
        self.now = self.most = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body in one piece, or the client's delayed acknowledgement costs 40 ms
    server: Server

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.server.requests.append((self.command, self.path, self.headers.get("x-test"), body))
            self.server.connections.add(self.client_address)
        time.sleep(0.002)
        with self.server.lock:
            self.server.now -= 1
        self.send_response(503 if self.path == "/503" else 200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def serial(root: Path, target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / ".tools/bin/serial", *arguments], input=target, capture_output=True, text=True, check=False
    )


def encoded(root: Path, file: Path) -> list[dict]:
    lines = subprocess.run(
        [root / ".tools/bin/vegeta", "encode", "-to", "json", file], check=True, capture_output=True, text=True
    ).stdout
    return [json.loads(line) for line in lines.splitlines()]


def reported(root: Path, file: Path) -> dict:
    command = [root / ".tools/bin/vegeta", "report", "-type", "json", file]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def nanoseconds(timestamp: str) -> int:
    seconds, fraction, zone = re.fullmatch(r"([^.]*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", timestamp).groups()
    return int(datetime.fromisoformat(seconds + zone).timestamp()) * 10**9 + int((fraction or "").ljust(9, "0"))


def test_exactly_so_many_requests_one_after_another(root: Path, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "run.bin"
    target = json.dumps({"method": "GET", "url": server.url})
    result = serial(root, target, "-requests", "200", "-output", str(file))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    assert len(server.requests) == 200
    assert server.most == 1
    assert len(server.connections) == 1

    report = reported(root, file)
    assert report["requests"] == 200
    assert report["status_codes"] == {"200": 200}

    records = encoded(root, file)
    assert [record["seq"] for record in records] == list(range(200))
    assert all(record["code"] == 200 and record["error"] == "" for record in records)
    assert all(record["latency"] >= 2_000_000 for record in records)
    starts = [nanoseconds(record["timestamp"]) for record in records]
    for start, record, following in zip(starts, records, starts[1:], strict=False):
        assert following >= start + record["latency"]


def test_target_in_vegetas_json_format(root: Path, server: Server, tmp_path: Path) -> None:
    target = {"method": "POST", "url": server.url + "path", "header": {"x-test": ["a header"]}, "body": "Ym9keQ=="}
    result = serial(root, json.dumps(target) + "\n", "-requests", "2", "-output", str(tmp_path / "run.bin"))
    assert result.returncode == 0, result.stderr
    assert server.requests == [("POST", "/path", "a header", b"body")] * 2


def test_failures_are_recorded_not_hidden(root: Path, server: Server, tmp_path: Path) -> None:
    refused, failing = tmp_path / "refused.bin", tmp_path / "failing.bin"
    target = json.dumps({"method": "GET", "url": server.url + "503"})
    assert serial(root, target, "-requests", "3", "-output", str(failing)).returncode == 0
    assert reported(root, failing)["status_codes"] == {"503": 3}
    assert reported(root, failing)["success"] == 0

    target = json.dumps({"method": "GET", "url": "http://127.0.0.1:1/"})
    assert serial(root, target, "-requests", "3", "-output", str(refused)).returncode == 0
    assert [record["code"] for record in encoded(root, refused)] == [0, 0, 0]
    assert "connection refused" in encoded(root, refused)[0]["error"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_it_says_so(root: Path, server: Server, tmp_path: Path, sent: signal.Signals) -> None:
    file = tmp_path / "run.bin"
    process = subprocess.Popen(
        [root / ".tools/bin/serial", "-requests", "100000", "-output", file],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps({"method": "GET", "url": server.url}))
    process.stdin.close()
    while len(server.requests) < 10:
        time.sleep(0.005)
    process.send_signal(sent)
    assert process.wait(timeout=10) != 0
    stopped = re.search(r"stopped by the signal .* after (\d+) of 100000 requests", process.stderr.read())
    process.stderr.close()
    assert len(encoded(root, file)) == int(stopped[1]) >= 9


@pytest.mark.parametrize(
    ("target", "arguments", "said"),
    [
        ("", ["-requests", "1"], "no targets"),
        ("not JSON", ["-requests", "1"], "standard input"),
        ('{"method": "GET", "url": "http://127.0.0.1:1/"}\n' * 2, ["-requests", "1"], "more than one target"),
        ('{"method": "GET", "url": "http://127.0.0.1:1/"}', [], "usage"),
        ('{"method": "GET", "url": "http://127.0.0.1:1/"}', ["-requests", "1", "-output", "/dev/full"], "no space"),
    ],
)
def test_bad_input_is_refused(root: Path, target: str, arguments: list[str], said: str) -> None:
    result = serial(root, target, *arguments)
    assert result.returncode != 0
    (line,) = result.stderr.splitlines()
    assert said in line
