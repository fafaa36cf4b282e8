"""What happened to pods between two looks, on the real control plane: statuses are patched as a kubelet would."""

from collections.abc import Callable
from typing import Any

import pytest
from cluster.api import wait_until
from cluster.namespace import Namespace
from loadstone.collect.targets.kubernetes import monitoring
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.monitoring import Watched


class Space:
    """A namespace with one deployment, watched from `begin` on."""

    def __init__(self, namespace: Namespace, replicas: int = 1) -> None:
        self.namespace, self.api, self.name = namespace, namespace.api, namespace.name
        if replicas:
            namespace.deploy("web", replicas)
            namespace.wait_ready("web", replicas)
        self.watched = Watched(Cluster(patience_s=5), [self.name])
        self.watched.begin()

    def pods(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.namespace.pods("web"))

    def happened(self) -> list[dict[str, Any]]:
        """Without the warnings of kubelets and schedulers that this test is not about."""
        return [each for each in self.watched.incidents() if each["kind"] != "warning"]

    def container(self, pod: str, **status: Any) -> None:
        """Patch the status of a pod's only container."""
        (known,) = self.namespace.get("Pod", pod)["status"]["containerStatuses"]
        self.status(pod, containerStatuses=[{**known, **status}])

    def status(self, pod: str, **status: Any) -> None:
        self.api.patch("Pod", self.name, pod, {"status": status}, "status")

    def event(self, name: str, kind: str = "Warning", uid: str = "", **body: Any) -> None:
        about = {"kind": "Pod", "namespace": self.name, "name": "web-1", "uid": uid}
        event = {"type": kind, "reason": "BackOff", "message": "it failed", "involvedObject": about, "count": 1, **body}
        self.namespace.create("Event", name, **event)


@pytest.fixture
def space(namespace: Callable[..., Namespace]) -> Callable[..., Space]:
    return lambda replicas=1: Space(namespace(), replicas)


def _terminated(code: int, reason: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def test_a_quiet_attack_has_no_incidents(space) -> None:
    assert space(2).watched.incidents() == []


def test_restarts_since_the_baseline_with_their_reason(space) -> None:
    it = space(2)
    one, two = it.pods()
    it.container(one, restartCount=3, lastState=_terminated(137, "OOMKilled"))
    it.container(two, restartCount=1, lastState=_terminated(2, "Error"))
    assert it.happened() == [
        {
            "kind": "oom",
            "object": f"{it.name}/{one}",
            "text": "restarted 3 times; before that it was killed for lack of memory (OOMKilled)",
            "container": "app",
            "reason": "OOMKilled",
            "count": 3,
        },
        {
            "kind": "restart",
            "object": f"{it.name}/{two}",
            "text": "restarted; before that it ended with exit code 2 (Error)",
            "container": "app",
            "reason": "Error",
            "count": 1,
        },
    ]
    it.watched.begin()  # what was there before is none of the next attack's
    assert it.happened() == []
    it.container(one, restartCount=4)
    (again,) = it.happened()
    assert (again["kind"], again["count"]) == ("oom", 1)


def test_a_container_that_ended_and_was_not_started_again(space) -> None:
    it = space(2)
    one, two = it.pods()
    it.container(one, state=_terminated(137, "OOMKilled") | {"running": None})
    it.container(two, state=_terminated(1, "Error") | {"running": None})
    assert [(each["kind"], each["object"], each["text"]) for each in it.happened()] == [
        ("oom", f"{it.name}/{one}", "was killed for lack of memory (OOMKilled) and was not started again"),
        ("ended", f"{it.name}/{two}", "ended with exit code 1 (Error) and was not started again"),
    ]


def test_a_deleted_pod_and_its_successor(space) -> None:
    it = space()
    (old,) = it.pods()
    it.api.delete("Pod", it.name, old)
    new = wait_until(lambda: [pod for pod in it.pods() if pod != old], "another pod")[0]
    wait_until(lambda: it.pods() == [new], "the end of the first")
    (found,) = it.happened()
    assert (found["kind"], found["object"]) == ("replaced", f"{it.name}/{old}")
    assert found["text"] == f"was replaced by {it.name}/{new}"


def test_pods_that_vanish_and_pods_that_are_added(space) -> None:
    it = space(2)
    before = it.pods()
    it.namespace.scale("web", 1)
    wait_until(lambda: len(it.pods()) == 1, "one pod less")
    (gone,) = set(before) - set(it.pods())
    (found,) = it.happened()
    assert (found["kind"], found["object"]) == ("vanished", f"{it.name}/{gone}")
    it.watched.begin()
    it.namespace.scale("web", 2)
    it.namespace.wait_ready("web", 2)
    (new,) = set(it.pods()) - set(before)
    (found,) = it.happened()
    assert (found["kind"], found["object"]) == ("added", f"{it.name}/{new}")


def test_a_pod_that_still_goes_is_lost_once(namespace) -> None:
    slow = namespace()
    slow.deploy("web", 1, gone_after="1h")
    slow.wait_ready("web", 1)
    watched = Watched(Cluster(patience_s=5), [slow.name])
    watched.begin()
    slow.scale("web", 0)
    wait_until(lambda: "deletionTimestamp" in slow.pods("web")[0]["metadata"], "its end")
    (found,) = watched.incidents()
    assert (found["kind"], found["text"]) == ("vanished", "is being deleted and was not replaced")
    watched.begin()
    assert watched.incidents() == []


def test_an_evicted_pod(space) -> None:
    it = space(2)
    one, two = it.pods()
    it.status(one, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    it.status(two, phase="Failed", message="a reason of its own")
    found = {each["object"]: (each["kind"], each["text"]) for each in it.happened() if each["kind"] != "added"}
    assert found == {
        f"{it.name}/{one}": ("evicted", "The node was low on resource: memory."),
        f"{it.name}/{two}": ("failed", "a reason of its own"),
    }


def test_an_evicted_pod_that_is_gone_is_known_by_its_event(space) -> None:
    it = space()
    (pod,) = it.namespace.pods("web")
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    it.event("evicted", "Normal", uid, reason="Preempted", message="Preempted by another pod")
    it.api.delete("Pod", it.name, name)
    wait_until(lambda: name not in it.pods() and it.pods(), "another pod")
    found = [each for each in it.happened() if each["object"] == f"{it.name}/{name}"]
    assert [(each["kind"], each["text"]) for each in found] == [("evicted", "Preempted by another pod")]


def test_warnings_that_are_new_or_counted_up(space) -> None:
    it = space(0)
    it.event("old")
    it.event("counted", count=5)
    it.event("series", count=0, series={"count": 2, "lastObservedTime": "2026-11-21T11:30:00.000000Z"})
    it.watched.begin()
    it.event("new", reason="Unhealthy", message="probe failed")
    it.event("normal", "Normal")
    it.api.patch("Event", it.name, "counted", {"count": 9})
    it.api.patch("Event", it.name, "series", {"series": {"count": 4}})
    found = sorted((each["reason"], each["text"], each["count"]) for each in it.watched.incidents())
    assert found == [("BackOff", "it failed", 2), ("BackOff", "it failed", 4), ("Unhealthy", "probe failed", 1)]
    assert {each["object"] for each in it.watched.incidents()} == {f"Pod {it.name}/web-1"}


def test_a_pod_that_cannot_be_scheduled_is_a_real_warning(space) -> None:
    it = space(0)
    it.namespace.create(
        "Pod", "huge", spec={"containers": [{"name": "app", "image": "x", "resources": {"requests": {"cpu": "9k"}}}]}
    )
    found = wait_until(lambda: [each for each in it.watched.incidents() if each["kind"] == "warning"], "a warning")
    assert (found[0]["reason"], found[0]["object"]) == ("FailedScheduling", f"Pod {it.name}/huge")


def test_a_cluster_that_cannot_be_asked_is_no_error(plane, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = Watched(Cluster(patience_s=0), ["default"])
    assert impatient.incidents()[0]["text"].endswith("the state before the attack was not recorded")
    impatient.begin()
    with plane.api_killed():
        (found,) = impatient.incidents()
    assert found["kind"] == "unknown"
    assert "events during the attack are unknown: GET /api/v1/namespaces/default/pods" in found["text"]
    wait_until(lambda: impatient.incidents() == [], "the API server")


def test_many_incidents_are_counted_and_their_texts_kept_as_they_are(space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "MOST", 2)
    it = space(0)
    for number in range(5):
        it.event(f"new-{number}", message="<b>" * 300)
    found = it.watched.incidents()
    assert [each["kind"] for each in found] == ["warning", "warning", "more"]
    assert found[-1]["text"] == "3 more"
    assert found[0]["text"] == "<b>" * 300
