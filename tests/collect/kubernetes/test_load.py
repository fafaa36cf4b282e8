"""Load generators as pods, on a real control plane, through its real proxy to pods, with the real program in them."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cluster.api import wait_until
from cluster.containers import Containers
from cluster.namespace import Namespace
from loadstone.collect.generators.several import Outputs
from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.kubernetes import generator_pods
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.generator_pods import PodFleet
from loadstone.collect.targets.kubernetes.objects import JOB
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.config import redact
from support.checkout import PROJECT

RATE = 60


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.server.asked += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(networked_plane) -> Iterator[SimpleNamespace]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    server.asked = 0  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield SimpleNamespace(text=f"http://127.0.0.1:{server.server_address[1]}/", server=server)
    server.shutdown()
    server.server_close()


@pytest.fixture
def space(networked_plane) -> Namespace:
    found = Namespace(networked_plane, "load")
    wait_until(found._has_account, "its service account")
    return found


class Fleet:
    """A fleet of `count` that sends for so many seconds, after a warm-up of a tenth of that."""

    def __init__(self, space: Namespace, url: str, folder: Path, count: int, seconds: float, **declared: Any) -> None:
        target = {
            "kind": "kubernetes",
            "namespace": space.name,
            "ready_timeout": "60s",
            "patience": "30s",
            "variants": {},
            "generators": {"image": "registry.invalid/load:1", **declared},
        }
        self.space = space
        resolved = Declared.of(target, "here")
        assert resolved.generators
        ends = [("measured", seconds, True), ("others", seconds / 10, False)]
        stages = [
            {"rate": RATE, "to": RATE, "nanoseconds": round(s * 1e9), "requests": round(RATE * s), "measured": measured}
            for _, s, measured in reversed(ends)
        ]
        request = {"method": "GET", "url": url, "header": {"X-Secret": ["hidden"]}}
        shared = {"draw": {}, "of": count, "step": count, "connection": {}, "redact": redact.names().settings()}
        plans = [{**request, "stages": stages, "part": part, **shared} for part in range(count)]
        self.outputs = [
            Outputs(*(folder / f"{name}-{part}" for name in ("measured", "others", "negotiated", "redacted")))
            for part in range(count)
        ]
        self.fleet = PodFleet(
            Cluster(patience_s=30), resolved.generators, resolved.ready_timeout_s, "a-record", plans, self.outputs
        )

    def begin(self) -> None:
        self.fleet.begin(SimpleNamespace(timeout_s=5.0), lambda: None, lambda: None)  # type: ignore[arg-type]

    def finish(self) -> None:
        wait_until(lambda: self.fleet.exit_code() == 0, "the end")

    def lines(self, which: int) -> list[Mapping[str, Any]]:
        files = [str(file) for pair in self.outputs if (file := (pair.measured, pair.others)[which]).stat().st_size]
        command = [str(PROJECT / ".tools/bin/vegeta"), "encode", "-to=json", *files]
        return [
            json.loads(line) for line in subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
        ]


def jobs(space: Namespace) -> list[Any]:
    return space.all("Job")


def test_pods_send_what_one_generator_does(networked_plane, space, url, tmp_path: Path) -> None:
    it = Fleet(space, url.text, tmp_path, 3, 1.0, cpu="500m", node_selector={"kubernetes.io/os": "linux"})
    with Containers(networked_plane, space.name, tmp_path / "pods") as containers:
        it.begin()
        (job,) = jobs(space)
        it.finish()
        it.fleet.stop()
        wait_until(lambda: not jobs(space) and not containers.running, "the Job's end")
    for which, count in ((0, RATE), (1, RATE // 10)):
        lines = it.lines(which)
        assert sorted(line["seq"] for line in lines) == list(range(count))
        assert all(line["attack"] == f"generator-{line['seq'] % 3}" and line["code"] == 200 for line in lines)
    assert url.server.asked == RATE + RATE // 10
    said = it.fleet.reports
    assert [each["requests"] for each in said] == [RATE // 3] * 3
    for each in said:
        # One machine has one clock: what is measured of it must be nothing, within what is said to be unsure.
        assert abs(each["clock_offset_ns"]) <= each["clock_uncertainty_ns"]
        assert abs(each["clock_drift_ns"]) <= 2 * each["clock_uncertainty_ns"]
        assert each["pod"] and each["node"] == "node-0"
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (
        "Indexed",
        3,
        3,
        0,
    )
    assert spec["activeDeadlineSeconds"] > 600 and spec["ttlSecondsAfterFinished"] > 0
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never" and pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["image"] == "registry.invalid/load:1"
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert "hidden" not in json.dumps(job), "requests may hold credentials, and go to the pods alone"


def test_a_namespace_of_restricted_pods_takes_them(networked_plane, space, url, tmp_path: Path) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    networked_plane.api.patch("Namespace", "", space.name, label)
    it = Fleet(space, url.text, tmp_path, 2, 0.5)
    with Containers(networked_plane, space.name, tmp_path / "pods"):
        it.begin()
        it.finish()
    assert len(it.lines(0)) == RATE // 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_pod_that_dies_fails_the_run(networked_plane, space, url, tmp_path: Path, number: int) -> None:
    it = Fleet(space, url.text, tmp_path, 2, 60.0)
    with Containers(networked_plane, space.name, tmp_path / "pods") as containers:
        it.begin()
        wait_until(lambda: url.server.asked > 5, "requests")
        containers.programs[min(containers.programs)].send_signal(number)
        with pytest.raises(RunFailedError, match="generator 0 of 2"):
            it.finish()
        it.fleet.stop()
        wait_until(lambda: not jobs(space) and not containers.running, "the others' end")


def test_pods_that_never_come_fail_the_run_and_say_why(networked_plane, space, url, tmp_path: Path) -> None:
    it = Fleet(space, url.text, tmp_path, 2, 1.0, node_selector={"nowhere": "at-all"})
    it.fleet.ready_timeout_s = 3.0
    with pytest.raises(
        RunFailedError, match=r"pods are not ready in time: .*is Pending.*didn't match Pod's node affinity"
    ):
        it.begin()
    it.fleet.stop()
    wait_until(lambda: not jobs(space), "the Job's end")


def test_an_image_that_is_not_there_is_told_at_once(networked_plane, space, url, tmp_path: Path) -> None:
    it = Fleet(space, url.text, tmp_path, 1, 1.0)

    def refuse() -> None:
        pods = wait_until(lambda: [pod for pod in space.all("Pod") if pod["status"].get("podIP")], "its pod")
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        state = {"name": "generator", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
        space.api.patch(
            "Pod", space.name, pods[0]["metadata"]["name"], {"status": {"containerStatuses": [state]}}, "status"
        )

    threading.Thread(target=refuse, daemon=True).start()
    # kwok has said that it is ready: what waits for its program then finds nobody there.
    with pytest.raises(RunFailedError, match=r"ImagePullBackOff: no such image|generator 0 of 1"):
        it.begin()
    it.fleet.stop()


def test_the_api_server_may_be_away_while_they_send(networked_plane, space, url, tmp_path: Path) -> None:
    """Nothing of the load goes through it, and what is asked of the pods is asked again."""
    it = Fleet(space, url.text, tmp_path, 2, 4.0)
    with Containers(networked_plane, space.name, tmp_path / "pods"):
        it.begin()
        wait_until(lambda: url.server.asked > 30, "requests")
        with networked_plane.api_killed():
            pass
        it.finish()
    assert sorted(line["seq"] for line in it.lines(0)) == list(range(4 * RATE))


def test_results_come_in_parts_and_are_held_against_their_checksum(
    networked_plane, space, url, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_pods, "_PART_BYTES", 100)
    it = Fleet(space, url.text, tmp_path, 2, 1.0)
    asked: list[str] = []
    ask = it.fleet._ask

    def watched(pod, method, path, body=None, headers=None):
        asked.extend([path] if headers else [])
        return ask(pod, method, path, body, headers)

    monkeypatch.setattr(it.fleet, "_ask", watched)
    with Containers(networked_plane, space.name, tmp_path / "pods"):
        it.begin()
        it.finish()
        assert len(asked) > 8 and sorted(line["seq"] for line in it.lines(0)) == list(range(RATE))

        def damaged(pod, method, path, body=None, headers=None):
            answer = ask(pod, method, path, body, headers)
            return answer if path == "status" else answer[:-1] + bytes([answer[-1] ^ 1])

        monkeypatch.setattr(it.fleet, "_ask", damaged)
        with pytest.raises(RunFailedError, match="were damaged in transit"):
            it.fleet._fetch(it.fleet._pods[0])


def test_what_an_earlier_run_left_goes_first(networked_plane, space, url, tmp_path: Path) -> None:
    left = Fleet(space, url.text, tmp_path, 1, 60.0)
    again = Fleet(space, url.text, tmp_path, 2, 0.5)
    with Containers(networked_plane, space.name, tmp_path / "pods") as containers:
        left.begin()
        again.begin()
        assert len(containers.running) == 2 and len(jobs(space)) == 1
        again.finish()
        generator_pods.remove(Cluster(), space.name, "another-record", lambda: None)
        assert len(Cluster().list(JOB, space.name)) == 1
        generator_pods.remove(Cluster(), space.name, "a-record", lambda: None)
        wait_until(lambda: not jobs(space), "its end")


def test_clocks_that_differ_are_measured_and_start_together(
    networked_plane, space, url, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second pod's clock, as far as anybody here can tell, is half an hour ahead."""
    it = Fleet(space, url.text, tmp_path, 2, 0.5)
    ahead_ns, ask = 1800 * 10**9, it.fleet._ask

    def shifted(pod, method, path, body=None, headers=None):
        if pod.number == 1 and path == "start":
            body = {"start": body["start"] - ahead_ns}  # which its own clock, half an hour ahead, would reach then
        answer = ask(pod, method, path, body, headers)
        if pod.number == 1 and path == "status":
            status = json.loads(answer)
            answer = json.dumps(status | {"now": status["now"] + ahead_ns}).encode()
        return answer

    monkeypatch.setattr(it.fleet, "_ask", shifted)
    with Containers(networked_plane, space.name, tmp_path / "pods"):
        it.begin()
        it.finish()
    first, second = it.fleet.reports
    assert abs(first["clock_offset_ns"]) <= first["clock_uncertainty_ns"]
    assert abs(second["clock_offset_ns"] - ahead_ns) <= second["clock_uncertainty_ns"]
    assert second["start"] - first["start"] == second["clock_offset_ns"] - first["clock_offset_ns"]
    sent = sorted((line["seq"], line["timestamp"]) for line in it.lines(0))
    assert [seq for seq, _ in sent] == list(range(RATE // 2)) and sent[0][1] <= sent[1][1] <= sent[-1][1]


def test_an_agreed_start_that_is_missed_fails_the_run(
    networked_plane, space, url, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_pods, "_AHEAD_S", -5.0)
    it = Fleet(space, url.text, tmp_path, 2, 1.0)
    with (
        Containers(networked_plane, space.name, tmp_path / "pods"),
        pytest.raises(RunFailedError, match="the agreed start was missed"),
    ):
        it.begin()
    assert url.server.asked == 0
