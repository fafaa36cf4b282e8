"""Sweeps whose load comes from pods, with the rights that are said to be needed and no others; and killed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cluster.api import wait_until
from cluster.containers import Containers
from cluster.control_plane import ControlPlane
from cluster.namespace import Namespace
from loadstone.collect.targets.kubernetes.rights import needed
from loadstone.collect.targets.kubernetes.settings import Declared
from support.checkout import Checkout
from support.standin import StandIn

PORT = 8080
RATE = 50


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Variant", "right")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


class Sweep:
    """Two runs of one variant behind a Service, by two pods, as an account with just the needed rights."""

    def __init__(
        self, plane: ControlPlane, pristine: Path, folder: Path, duration: str, tls: dict[str, str] | None = None
    ) -> None:
        self.control, self.space = Namespace(plane, "loadstone"), Namespace(plane, "plain")
        self.space.deploy("web", 1)
        address = self.space.serve("web", PORT)
        self.space.wait_ready("web", 1)
        variant = {
            "namespace": self.space.name,
            "url": f"http://{address}:{PORT}/",
            "expect": {"status": 200, "headers": {"x-variant": "right"}},
        }
        if tls:
            variant |= {"url": f"https://{address}:{PORT}/", "tls": tls}
        target: dict[str, Any] = {
            "kind": "kubernetes",
            "namespace": self.control.name,
            "lease_duration": "5s",
            "ready_timeout": "60s",
            "variants": {"plain": variant},
            "generators": {"image": "registry.invalid/load:1"},
        }
        sweep = {"app": "shop", "variants": ["plain"], "rates": [RATE], "runs": 2, "duration": duration}
        sweep |= {"generators": 2, "warmup": {"duration": "200ms", "min_rate": 20}}
        self.checkout = Checkout(pristine, folder / "checkout")
        self.checkout.replace(sweep=sweep, target=target, host="here")
        self.control.create("ServiceAccount", "tester")
        declared = needed(Declared.of(target, "here"))
        for space in (self.control, self.space):
            rules = [
                {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
                for right in declared
                if right.namespace == space.name
            ]
            self.control.bind("tester", rules, space.name)
        self.kubeconfig = self.control.token_kubeconfig(folder / "kubeconfig", "tester")

    def jobs(self) -> list[Any]:
        return self.control.all("Job")


@pytest.fixture
def answering(networked_plane: ControlPlane) -> Iterator[ControlPlane]:
    server = ThreadingHTTPServer(("0.0.0.0", PORT), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield networked_plane
    server.shutdown()
    server.server_close()


def test_a_sweep_by_pods(
    answering: ControlPlane, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Sweep(answering, pristine, tmp_path, "1s")
    before = it.space.state()
    monkeypatch.setenv("KUBECONFIG", str(it.kubeconfig))
    it.checkout.run("--cores", "1", "open")
    (metadata,) = it.checkout.archive.rglob("metadata.json")
    assert json.loads(metadata.read_text())["generator"] == {
        "name": "vegeta",
        "version": json.loads(metadata.read_text())["tools"]["vegeta"],
        "program": "paced",
        "count": 2,
        "in": "cluster",
    }
    with Containers(answering, it.control.name, tmp_path / "pods") as containers:
        it.checkout.run("--cores", "all")
        wait_until(lambda: not containers.running, "the end of all generators")
    assert it.jobs() == [] and it.space.state() == before
    monkeypatch.chdir(it.checkout.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        runs = database.sql("SELECT run, requests, generators, complete, excluded, problems FROM runs ORDER BY run")
        assert runs.fetchall() == [(run, RATE, 2, True, False, []) for run in (1, 2)]
        of = database.sql("SELECT run, generator, requests, clock_offset_ns IS NOT NULL FROM senders ORDER BY ALL")
        assert of.fetchall() == [(run, number, RATE // 2, True) for run in (1, 2) for number in (0, 1)]
        assert database.sql("SELECT count(*) FROM requests WHERE generator <> seq % 2").fetchall() == [(0,)]
        places = {row[0] for row in database.sql("SELECT DISTINCT place FROM senders").fetchall()}
        assert len(places) == 4 and all(place.endswith("on node-0") for place in places)


def test_snakemake_killed_while_pods_send(
    answering: ControlPlane, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper ends what still sends, and puts the cluster back; the next command makes the run anew."""
    it = Sweep(answering, pristine, tmp_path, "4s")
    before = it.space.state()
    monkeypatch.setenv("KUBECONFIG", str(it.kubeconfig))
    it.checkout.run("--cores", "1", "open")
    with Containers(answering, it.control.name, tmp_path / "pods") as containers:
        process = it.checkout.start("--cores", "all", "attacks")
        wait_until(lambda: len(containers.running) == 2 or process.poll() is not None, "two generators")
        assert process.poll() is None, process.stdout and process.stdout.read()
        process.kill()
        process.communicate()
        it.checkout.wait_idle(60)
        wait_until(lambda: not it.jobs() and not containers.running, "the end of its generators")
        assert it.space.state() == before and it.checkout.results() == []

        it.checkout.run("--cores", "all", "attacks")
        assert len(it.checkout.results()) == 2 and it.jobs() == [] and it.space.state() == before


def test_pods_have_certificates_and_keys_as_a_secret_that_is_removed(
    networked_plane: ControlPlane, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = StandIn(
        tmp_path / "server",
        lambda *_: (200, {"X-Variant": "right"}, "ok"),
        "gateway.internal",
        clients=True,
        address=("0.0.0.0", PORT),
    )
    tls = {"ca": server.ca, "cert": server.cert, "key": server.key, "server_name": "gateway.internal"}
    it = Sweep(networked_plane, pristine, tmp_path, "1s", tls)
    monkeypatch.setenv("KUBECONFIG", str(it.kubeconfig))
    it.checkout.run("--cores", "1", "open")
    with Containers(networked_plane, it.control.name, tmp_path / "pods") as containers:
        it.checkout.run("--cores", "all", "attacks")
    server.close()
    assert len(it.checkout.results()) == 2
    assert it.control.all("Secret") == [] and it.jobs() == []
    key = Path(server.key).read_text()
    assert not [spec for spec in containers.specs if key.splitlines()[1] in json.dumps(spec)]
    kept = [path for path in it.checkout.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if key.splitlines()[1].encode() in path.read_bytes()]
    record = json.loads(next(it.checkout.archive.rglob("1.run.json")).read_text())
    assert [each["protocol"] for each in record["negotiated"]] == ["http1"]
