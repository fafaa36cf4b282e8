"""The control plane that other tests rely on: pods as slow as asked, calls recorded, nothing left behind."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from conftest import PROJECT

from cluster.api import Api, ApiError, wait_until
from cluster.namespace import Namespace, declared


def test_slow_pods_and_their_record(plane, namespace) -> None:
    space = namespace()
    space.deploy("web", 2, ready_after="1s", gone_after="2s")
    space.wait_ready("web", 2)
    space.scale("web", 0)
    wait_until(lambda: not space.pods("web"), "the end of the pods")

    lives = plane.calls.pods({space.name})
    assert len(lives) == 2
    for life in lives:
        assert life.labels["app"] == "web"
        # The times of pods are whole seconds, from which kwok reckons.
        assert (life.ready - life.created).total_seconds() > 0
        assert (life.gone - life.deleted).total_seconds() > 0.9
        assert life.is_ready(life.ready) and not life.is_terminating(life.ready)
        assert life.is_terminating(life.deleted) and not life.is_ready(life.deleted)
        assert life.is_there(life.deleted) and not life.is_there(life.gone)
    assert [(name, count) for _, name, count in plane.calls.replicas({space.name})] == [
        (f"{space.name}/web", 2),
        (f"{space.name}/web", 0),
    ]


def test_calls_are_recorded_with_who_made_them_and_what_was_sent(plane, namespace) -> None:
    space = namespace()
    since = datetime.now(UTC)
    space.create("ConfigMap", "one", data={"a": "1"})
    space.api.patch("ConfigMap", space.name, "one", {"data": {"a": "2"}})
    with pytest.raises(ApiError, match="already exists"):
        space.create("ConfigMap", "one")
    space.get("ConfigMap", "one")
    calls = [call for call in plane.calls.all(since, {space.name}) if call.name in ("one", "")]
    seen = [(call.verb, call.code) for call in calls if call.resource == "configmaps"]
    assert seen == [("create", 201), ("patch", 200), ("create", 409), ("get", 200)]
    created, patched = plane.calls.writes(since, {space.name})
    assert (created.name, created.body["data"], patched.body) == ("one", {"a": "1"}, {"data": {"a": "2"}})
    assert patched.answer["data"] == {"a": "2"}
    assert since <= created.started <= created.ended <= patched.started


def test_a_service_account_may_do_what_its_role_says_and_no_more(plane, namespace, tmp_path: Path) -> None:
    space, other = namespace(), namespace()
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    config = json.loads(space.kubeconfig(tmp_path / "kubeconfig", rules).read_text())
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    user = Api(cluster["server"], token, Path(cluster["certificate-authority"]))
    user.create("ConfigMap", {"metadata": {"name": "mine"}}, space.name)
    for refused in (
        lambda: user.all("ConfigMap", space.name),
        lambda: user.create("ConfigMap", {"metadata": {"name": "mine"}}, other.name),
    ):
        with pytest.raises(ApiError, match="forbidden") as caught:
            refused()
        assert caught.value.status == 403


@pytest.mark.parametrize("kind", ["Kustomization", "HelmRelease"])
def test_flux_takes_only_a_boolean_for_suspend(namespace, kind: str) -> None:
    space = namespace()
    before = declared(space.flux(kind, "app", suspend=False))
    space.api.patch(kind, space.name, "app", {"spec": {"suspend": True}})
    assert space.get(kind, "app")["spec"] == {"suspend": True}
    with pytest.raises(ApiError, match="422"):
        space.api.patch(kind, space.name, "app", {"spec": {"suspend": "yes"}})
    space.api.patch(kind, space.name, "app", {"spec": {"suspend": False}})
    assert space.state()[f"{kind} app"] == before


@pytest.mark.slow
def test_the_api_server_away_and_back(plane, namespace) -> None:
    space = namespace()
    with plane.api_killed(), pytest.raises(OSError, match="refused"):
        space.all("Pod")
    space.deploy("web")
    space.wait_ready("web", 1)
    frozen = http.client.HTTPSConnection(plane.address.removeprefix("https://"), timeout=0.5)
    with plane.api_frozen(), contextlib.closing(frozen), pytest.raises(TimeoutError):
        frozen.request("GET", "/livez")
    space.scale("web", 2)
    space.wait_ready("web", 2)


def test_metrics_present_dying_and_absent(metrics, namespace) -> None:
    metrics.metrics_file.write_text(json.dumps({"here/pod": {"cpu": "12m", "memory": "34Mi"}}))
    (found,) = metrics.api.all("PodMetrics", "here")
    assert found["containers"][0]["usage"] == {"cpu": "12m", "memory": "34Mi"}
    assert metrics.api.all("PodMetrics", "elsewhere") == []
    metrics.kill_metrics()
    with pytest.raises(ApiError) as caught:
        metrics.api.all("PodMetrics", "here")
    assert caught.value.status == 503
    metrics.remove_metrics()

    def is_gone() -> bool:
        with pytest.raises(ApiError) as caught:
            metrics.api.all("PodMetrics", "here")
        return caught.value.status == 404

    wait_until(is_gone, "the end of the metrics API")


def test_a_server_answers_at_the_addresses_of_pods_and_services(networked_plane) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.connection.getsockname()[0].encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    space = Namespace(networked_plane)
    service = space.serve("web")
    space.deploy("web", 3)
    space.wait_ready("web", 3)
    addresses = [pod["status"]["podIP"] for pod in space.pods("web")]
    assert len(set(addresses)) == 3
    with ThreadingHTTPServer(("0.0.0.0", 8080), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for address in [*addresses, service]:
            connection = http.client.HTTPConnection(address, 8080, timeout=10)
            connection.request("GET", "/")
            assert connection.getresponse().read().decode() == address
            connection.close()
        server.shutdown()


_HOLDER = """
import sys, time
from pathlib import Path
from cluster.control_plane import ControlPlane
with ControlPlane(Path(sys.argv[1])) as plane:
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_killed_test_session_leaves_nothing_running(plane, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT / "tests"), str(PROJECT / "scripts")])}
    command = [sys.executable, "-c", _HOLDER, str(tmp_path / "plane")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        started = psutil.Process(holder.pid).children(recursive=True)
        names = " ".join(" ".join(process.cmdline()[1:2]) for process in started)
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"):
            assert name in names
        holder.send_signal(signal.SIGKILL)
    _, left = psutil.wait_procs(started, timeout=60)
    assert left == []
