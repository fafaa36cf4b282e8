"""Real traces: Envoys that trace with OpenTelemetry, and what collects from them, a real Jaeger or a small receiver.

The receiver stores spans and answers them as Jaeger's query service does (its model/json), so that tests have real
dumps where there is no Jaeger. One from its Go module takes some minutes: ``go build
github.com/jaegertracing/jaeger/cmd/all-in-one`` at v1.57.0; LOADSTONE_JAEGER names the program.
"""

import json
import os
import shutil
import struct
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from loadstone import process

from support.checkout import free_ports

DELAY_MS = 20  # of each call to presidio
CALLS = 3

_LUA = """
function envoy_on_request(handle)
  for call = 1, CALLS do
    handle:httpCall("presidio", {[":method"]="POST", [":path"]="/analyze", [":authority"]="presidio"}, "text", 5000)
  end
end
""".replace("CALLS", str(CALLS))
_TYPE = "type.googleapis.com/envoy."
_FILTERS = _TYPE + "extensions.filters.http."

Fetch = Callable[[], bytes]


def _listener(name: str, port: int, filters: list[dict[str, Any]], action: Mapping[str, Any]) -> dict[str, Any]:
    """A listener whose spans carry its name as their service."""
    tracer = {
        "@type": _TYPE + "config.trace.v3.OpenTelemetryConfig",
        "service_name": name,
        "http_service": {"http_uri": {"uri": "http://collector/v1/traces", "cluster": "collector", "timeout": "1s"}},
    }
    router = {"name": "router", "typed_config": {"@type": _FILTERS + "router.v3.Router"}}
    manager = {
        "@type": _TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "tracing": {
            "spawn_upstream_span": True,
            "provider": {"name": "envoy.tracers.opentelemetry", "typed_config": tracer},
        },
        "http_filters": [*filters, router],
        "route_config": {
            "virtual_hosts": [{"name": name, "domains": ["*"], "routes": [{"match": {"prefix": "/"}, **action}]}]
        },
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {"name": name, "address": address, "filter_chains": [chain]}


def _config(front: int, app: int, presidio: int, collector: int) -> dict[str, Any]:
    lua = {"@type": _FILTERS + "lua.v3.Lua", "default_source_code": {"inline_string": _LUA}}
    delay = {"fixed_delay": f"{DELAY_MS / 1000}s", "percentage": {"numerator": 100}}
    fault = {"@type": _FILTERS + "fault.v3.HTTPFault", "delay": delay}
    answer = {"direct_response": {"status": 200, "body": {"inline_string": "found nothing"}}}
    clusters = [
        {
            "name": name,
            "connect_timeout": "1s",
            "load_assignment": {
                "cluster_name": name,
                "endpoints": [
                    {
                        "lb_endpoints": [
                            {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
                        ]
                    }
                ],
            },
        }
        for name, port in {"app": app, "presidio": presidio, "collector": collector}.items()
    ]
    runtime = {"tracing": {"opentelemetry": {"flush_interval_ms": 100, "min_flush_spans": 1}}}
    return {
        "layered_runtime": {"layers": [{"name": "static", "static_layer": runtime}]},
        "static_resources": {
            "listeners": [
                _listener("front", front, [{"name": "lua", "typed_config": lua}], {"route": {"cluster": "app"}}),
                _listener("app", app, [], answer),
                _listener("presidio", presidio, [{"name": "fault", "typed_config": fault}], answer),
            ],
            "clusters": clusters,
        },
    }


def attack(folder: Path, collector: int, requests: int) -> None:
    """Start Envoy, send so many requests to `front`, and give it the time to export all spans."""
    front, app, presidio = free_ports(3)
    config = folder / "envoy.json"
    config.write_text(json.dumps(_config(front, app, presidio, collector)))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    with subprocess.Popen([process.find("envoy"), "--config-path", config, *options]) as envoy:
        try:
            url = f"http://127.0.0.1:{front}/productpage"
            _until(lambda: urllib.request.urlopen(url, timeout=5).close() or True)
            for _ in range(requests - 1):
                urllib.request.urlopen(url, timeout=5).close()
            time.sleep(1)
        finally:
            envoy.terminate()


def _until(succeeds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while True:
        try:
            if succeeds():
                return
        except OSError:
            if time.monotonic() > limit:
                raise
        assert time.monotonic() < limit
        time.sleep(0.1)


# --- Jaeger ----------------------------------------------------------------------------------------------------------


def jaeger_program() -> str | None:
    return os.environ.get("LOADSTONE_JAEGER") or shutil.which("jaeger-all-in-one")


@contextmanager
def jaeger(folder: Path) -> Iterator[tuple[int, Fetch]]:
    """A real Jaeger: its OTLP port, and a function that gives a dump of all traces with the service `front`."""
    flags = [
        "collector.otlp.http.host-port",
        "query.http-server.host-port",
        "collector.otlp.grpc.host-port",
        "collector.grpc-server.host-port",
        "collector.http-server.host-port",
        "query.grpc-server.host-port",
        "admin.http.host-port",
        "http-server.host-port",
        "processor.jaeger-binary.server-host-port",
        "processor.jaeger-compact.server-host-port",
        "processor.zipkin-compact.server-host-port",
    ]
    ports = free_ports(len(flags))
    options = [f"--{flag}=127.0.0.1:{port}" for flag, port in zip(flags, ports, strict=True)]
    with (folder / "jaeger.log").open("wb") as log:
        running = subprocess.Popen([str(jaeger_program()), *options], stdout=log, stderr=log)
    address = f"http://127.0.0.1:{ports[1]}/api"

    def get(path: str) -> bytes:
        with urllib.request.urlopen(f"{address}{path}", timeout=10) as answer:
            content: bytes = answer.read()
            return content

    try:
        _until(lambda: bool(get("/services")))
        yield ports[0], lambda: get("/traces?service=front&limit=1000")
    finally:
        running.terminate()
        running.wait()


# --- the receiver ----------------------------------------------------------------------------------------------------


@contextmanager
def receiver(_: Path) -> Iterator[tuple[int, Fetch]]:
    """The same without Jaeger."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            received.append(b"".join(self.body()))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def body(self) -> Iterator[bytes]:
            if self.headers["Transfer-Encoding"] != "chunked":
                yield self.rfile.read(int(self.headers["Content-Length"]))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1], lambda: as_jaeger(received)
        server.shutdown()


def as_jaeger(exports: list[bytes]) -> bytes:
    """OTLP (opentelemetry/proto/trace/v1/trace.proto) as Jaeger's query service would answer it."""
    traces: dict[str, dict[str, Any]] = {}
    for export in exports:
        for resource_spans in _fields(export).get(1, []):
            fields = _fields(resource_spans)
            attributes = _attributes(_fields(fields[1][0]).get(1, []))
            for scope_spans in fields.get(2, []):
                for content in _fields(scope_spans).get(2, []):
                    _add(traces, attributes["service.name"], _fields(content))
    content = {"data": list(traces.values()), "total": 0, "limit": 0, "offset": 0, "errors": None}
    return json.dumps(content).encode()


def _add(traces: dict[str, dict[str, Any]], service: str, fields: dict[int, list[Any]]) -> None:
    trace_id, span_id = fields[1][0].hex(), fields[2][0].hex()
    trace = traces.setdefault(trace_id, {"traceID": trace_id, "spans": [], "processes": {}, "warnings": None})
    trace["processes"].setdefault(f"p-{service}", {"serviceName": service, "tags": []})
    start_ns, end_ns = fields[7][0], fields[8][0]
    parent = fields[4][0].hex() if fields.get(4, [b""])[0] else ""
    references = [{"refType": "CHILD_OF", "traceID": trace_id, "spanID": parent}] if parent else []
    tags = [{"key": key, "type": "string", "value": value} for key, value in _attributes(fields.get(9, [])).items()]
    trace["spans"].append(
        {
            "traceID": trace_id,
            "spanID": span_id,
            "operationName": fields[5][0].decode(),
            "references": references,
            "startTime": start_ns // 1000,
            "duration": (end_ns - start_ns) // 1000,
            "tags": tags,
            "logs": [],
            "processID": f"p-{service}",
            "warnings": None,
        }
    )


def _attributes(pairs: list[bytes]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        fields = _fields(pair)
        values = _fields(fields[2][0]).get(1, [b""])
        found[fields[1][0].decode()] = values[0].decode()
    return found


def _fields(message: bytes) -> dict[int, list[Any]]:
    """A protobuf message by field number: whole numbers, and bytes for all that has a length."""
    found: dict[int, list[Any]] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        value: Any
        if kind == 0:
            value, position = _varint(message, position)
        elif kind == 2:
            length, position = _varint(message, position)
            value, position = message[position : position + length], position + length
        else:
            form, size = {1: ("<Q", 8), 5: ("<I", 4)}[kind]
            value, position = struct.unpack_from(form, message, position)[0], position + size
        found.setdefault(number, []).append(value)
    return found


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
