"""Raw files for tests: made by the real vegeta against a small server, or line by line where values must be chosen."""

import base64
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import zstandard
from loadstone import process
from loadstone.archive import Campaign, Cell

TIMESTAMP = "2026-11-21T11:00:00+00:00"
START_NS = 1_795_262_400_123_456_789


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        code = int(self.path.strip("/") or 200)
        body = b"" if code == 204 else b'<script>"quoted"</script>\n' * 20
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the usual five a busy machine resets connections


@contextmanager
def server() -> Iterator[int]:
    """A local HTTP server that answers ``/503`` with 503 and so on; yields its port."""
    found = _Server(("127.0.0.1", 0), _Handler)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield found.server_address[1]
    finally:
        found.shutdown()
        found.server_close()


def vegeta(*arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run([process.find("vegeta"), *arguments], input=stdin, capture_output=True, check=True).stdout


@dataclass(frozen=True)
class Attack:
    """One real attack: 100 requests, of which 20 got 503, 20 got 404 and 20 found nobody listening."""

    binary: bytes

    @cached_property
    def json(self) -> bytes:
        return vegeta("encode", "--to", "json", stdin=self.binary)

    @cached_property
    def csv(self) -> bytes:
        return vegeta("encode", "--to", "csv", stdin=self.binary)

    @cached_property
    def report(self) -> dict[str, Any]:
        return json.loads(vegeta("report", "-type", "json", stdin=self.binary))


def attack() -> Attack:
    """Attack the local server for half a second."""
    with server() as port:
        paths = [f":{port}/200", f":{port}/503", f":{port}/204", f":{port}/404", ":1/"]
        targets = "".join(f"GET http://127.0.0.1{path}\n" for path in paths).encode()
        while True:
            found = Attack(vegeta("attack", "-rate", "200", "-duration", "500ms", stdin=targets))
            if found.report["requests"] == 100:  # on a busy machine vegeta may run out of time before
                return found


def line(seq: int, latency_ns: int = 1_000_000, **fields: Any) -> bytes:
    """One line as vegeta writes it; `sent_ns` and `offset_h` choose the timestamp."""
    sent_ns = fields.pop("sent_ns", START_NS + seq * 10_000_000)
    offset_h = fields.pop("offset_h", 0)
    instant = datetime.fromtimestamp(sent_ns // 10**9, timezone(timedelta(hours=offset_h)))
    decimals = f".{sent_ns % 10**9:09d}".rstrip("0").rstrip(".")
    offset = f"{offset_h:+03d}:00" if offset_h else "Z"
    record = {
        "attack": "",
        "seq": seq,
        "code": 200,
        "timestamp": f"{instant:%Y-%m-%dT%H:%M:%S}{decimals}{offset}",
        "latency": latency_ns,
        "bytes_out": 0,
        "bytes_in": 5,
        "error": "",
        "body": base64.b64encode(b"hello").decode(),
        "method": "GET",
        "url": "http://127.0.0.1:1/",
        "headers": {"Date": ["Sat, 21 Nov 2026 11:00:00 GMT"]},
    }
    return json.dumps(record | fields, separators=(",", ":")).encode() + b"\n"


def lines(latencies_ns: Sequence[int], rate: float = 100.0, **fields: Any) -> bytes:
    """A run's lines: request n sent at n / `rate`."""
    return b"".join(
        line(seq, int(latency_ns), sent_ns=START_NS + round(seq * 1e9 / rate), **fields)
        for seq, latency_ns in enumerate(latencies_ns)
    )


def compress(content: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(content)


def metadata(cell: Cell, **changes: Any) -> dict[str, Any]:
    """Version 5 metadata that fits the cell's path; one second of its rate. `changes` replace top-level keys."""
    return {
        "version": "5",
        "testMode": "vegeta",
        "timestamp": cell.campaign.timestamp,
        "warmupOptions": {"duration": "1s", "rate": "5"},
        "testOptions": {"duration": "1s", "rate": cell.rate},
        "workloadInfo": {"variant": cell.variant_dir, "hostname": cell.campaign.host, "test_replicas": 1},
        "labels": {"pods": "10"},
        "runs": 3,
        "order": {"kind": "fixed", "positions": [1, 2, 3]},
    } | changes


def write_cell(
    root: Path,
    files: Mapping[str, bytes],
    *,
    rate: str = "100",
    variant: str = "plain",
    app: str = "demo",
    host: str = "here",
    at: str = TIMESTAMP,
    **changes: Any,
) -> Cell:
    """One cell of an archive with the given files and metadata that fits, changed by `changes`."""
    cell = Cell(Campaign(root, app, host, at), rate, variant)
    cell.path.mkdir(parents=True, exist_ok=True)
    (cell.path / "metadata.json").write_text(json.dumps(metadata(cell, **changes)))
    for name, content in files.items():
        (cell.path / name).write_bytes(content)
    return cell


def utc(sent_ns: int) -> datetime:
    """An instant in microseconds, as tables show it."""
    return datetime.fromtimestamp(sent_ns // 10**9, UTC) + timedelta(microseconds=sent_ns % 10**9 // 1000)
