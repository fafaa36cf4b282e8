"""A whole sweep against Services, in a network in which their addresses and those of pods are real ones."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import pytest
from cluster.control_plane import ControlPlane
from cluster.namespace import Namespace
from support.checkout import Checkout

PORT = 8080


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = f"hello from {self.connection.getsockname()[0]}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def answering(networked_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane, and a server that answers at every address of a pod or Service, saying at which."""
    server = ThreadingHTTPServer(("0.0.0.0", PORT), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield networked_plane
    server.shutdown()
    server.server_close()


def test_a_sweep_against_services(
    answering: ControlPlane, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = {}
    for name in ("plain", "istio"):
        space = Namespace(answering, name)
        space.deploy("web", 1, ready_after="1s")
        address = space.serve("web", PORT)
        variants[name] = {
            "namespace": space.name,
            "url": f"http://{address}:{PORT}/",
            "expect": {"status": 200, "body_contains": f"hello from {address}"},
        }
    target = {"kind": "kubernetes", "namespace": "loadstone", "replicas": 2, "variants": variants}
    sweep = {"app": "shop", "variants": list(variants), "rates": [4], "runs": 2, "duration": "1s"}
    checkout = Checkout(pristine, tmp_path / "checkout")
    checkout.replace(sweep=sweep, target=target, host="here")
    checkout.run("--cores", "1", "open")

    checkout.run("--cores", "all")

    monkeypatch.chdir(checkout.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        found = database.sql(
            "SELECT variant, run, requests, complete, excluded, replicas FROM runs ORDER BY ALL"
        ).fetchall()
    assert found == [(name, run, 4, True, False, 2) for name in ("istio", "plain") for run in (1, 2)]
