"""Calls to a real API server: what is tried again and for how long, and what an error says."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster.front import FORWARD, LOSE, Front
from loadstone.collect.targets.kubernetes import keeper
from loadstone.collect.targets.kubernetes.client import (
    Cluster,
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
)
from loadstone.collect.targets.kubernetes.objects import CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, Kind
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.errors import LoadstoneError

READ_ONLY = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]


@pytest.fixture
def space(namespace):
    made = namespace()
    made.create("ConfigMap", "there")
    return made


@pytest.fixture
def front(plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Front]]:
    """Puts a server with the given fates between the API server and clients made afterwards."""
    fronts: list[Front] = []

    def make(*fates) -> Front:
        made = Front(plane, *fates).__enter__()
        fronts.append(made)
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path / "front")))
        return made

    yield make
    for made in fronts:
        made.__exit__()


def test_objects_are_made_read_changed_and_removed(plane, space) -> None:
    cluster = Cluster()
    assert cluster.host == plane.address
    assert cluster.version().startswith("v1.")
    made = cluster.create(CONFIG_MAP, space.name, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    assert cluster.get(CONFIG_MAP, space.name, "one") == made
    assert cluster.get(CONFIG_MAP, space.name, "two") is None
    changed = cluster.replace(CONFIG_MAP, space.name, made | {"data": {"a": "2"}})
    assert changed["data"] == {"a": "2"}
    cluster.delete(CONFIG_MAP, space.name, "one")
    cluster.delete(CONFIG_MAP, space.name, "one")
    assert cluster.get(CONFIG_MAP, space.name, "one") is None
    writes = plane.calls.writes(namespaces={space.name})
    assert {(call.agent, call.verb) for call in writes if call.name == "one"} == {
        ("loadstone", verb) for verb in ("create", "update", "delete")
    }


def test_what_has_changed_or_is_there_already_is_a_conflict(space) -> None:
    cluster = Cluster()
    made = cluster.create(CONFIG_MAP, space.name, {"metadata": {"name": "one"}})
    with pytest.raises(ConflictError, match=r'configmaps.* on https.*: configmaps "one" already exists'):
        cluster.create(CONFIG_MAP, space.name, {"metadata": {"name": "one"}})
    space.api.patch("ConfigMap", space.name, "one", {"data": {"a": "theirs"}})
    with pytest.raises(ConflictError, match="has been modified"):
        cluster.replace(CONFIG_MAP, space.name, made | {"data": {"a": "ours"}})
    with pytest.raises(ConflictError):
        cluster.delete(CONFIG_MAP, space.name, "one", uid="00000000-0000-0000-0000-000000000000")
    assert space.get("ConfigMap", "one")["data"] == {"a": "theirs"}


def test_lists_come_whole(plane, space) -> None:
    for number in range(601):
        labels = {"odd": str(number % 2)}
        space.create("ConfigMap", f"map-{number:03}", metadata={"labels": labels})
    cluster = Cluster()
    assert sum(each["metadata"]["name"].startswith("map-") for each in cluster.list(CONFIG_MAP, space.name)) == 601
    assert len(cluster.list(CONFIG_MAP, space.name, {"odd": "1"})) == 300
    calls = [call for call in plane.calls.all(namespaces={space.name}) if call.agent == "loadstone"]
    assert [call.verb for call in calls] == ["list", "list"]


def test_a_dry_run_shows_what_would_be_and_changes_nothing(plane, space) -> None:
    space.deploy("web", 0, image="example/app:1", env={"KEEP": "1"})
    before = space.get("Deployment", "web")
    container = {"name": "app", "image": "example/app:2", "env": [{"name": "NEW", "value": "2"}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    shown = Cluster().patched(DEPLOYMENT, space.name, "web", patch)
    (would_be,) = shown["spec"]["template"]["spec"]["containers"]
    # A strategic merge: by the names of containers and variables.
    assert would_be["image"] == "example/app:2"
    assert {each["name"] for each in would_be["env"]} == {"KEEP", "NEW"}
    assert space.get("Deployment", "web")["metadata"]["generation"] == before["metadata"]["generation"]
    assert not [call for call in plane.calls.writes(namespaces={space.name}) if call.agent == "loadstone"]
    with pytest.raises(ClusterError, match=r'unknown field "spec\.template\.oops"'):
        Cluster().patched(DEPLOYMENT, space.name, "web", {"spec": {"template": {"oops": 1}}})


def test_hostile_names_stay_names(plane, space) -> None:
    for name in ("../../../../version", "a?b", "a/b", "%2e%2e", "a b\r\nX-Header: 1"):
        with contextlib.suppress(ClusterError):
            assert Cluster(patience_s=0).get(CONFIG_MAP, space.name, name) is None


def test_what_is_forbidden_is_named(plane, space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(space.kubeconfig(tmp_path / "user", READ_ONLY)))
    user = Cluster("plane")
    assert user.list(CONFIG_MAP, space.name)
    with pytest.raises(ForbiddenError) as caught:
        user.create(LEASE, space.name, {"metadata": {"name": "mine"}})
    for part in ("tester", "cannot create", '"leases"', '"coordination.k8s.io"', space.name):
        assert part in str(caught.value)
    with pytest.raises(ForbiddenError, match='cannot list resource "configmaps"'):
        user.list(CONFIG_MAP, "kube-system")
    with pytest.raises(ForbiddenError, match="namespaces"):
        user.create(NAMESPACE, "", {"metadata": {"name": "mine"}})


def test_a_kind_that_is_not_installed_is_not_found(plane, space) -> None:
    unknown = Kind("nobody.example/v1", "things", "Thing")
    assert Cluster().get(unknown, space.name, "one") is None
    with pytest.raises(NotFoundError):
        Cluster().list(unknown, space.name)


@pytest.mark.slow
def test_calls_outlast_a_restart_of_the_server(plane, space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A user with a role, not an administrator: a server that is just starting refuses them everything.
    monkeypatch.setenv("KUBECONFIG", str(space.kubeconfig(tmp_path / "user", READ_ONLY)))
    said: list[str] = []
    errors: list[BaseException] = []
    answered: list[float] = []
    back = threading.Event()

    def keep_asking() -> None:
        cluster = Cluster(log=said.append)
        try:
            while not back.is_set() or not answered:
                assert cluster.list(CONFIG_MAP, space.name)
                answered.append(time.monotonic())
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    askers = [threading.Thread(target=keep_asking) for _ in range(3)]
    for asker in askers:
        asker.start()
    for _ in range(2):
        plane.kill_api()
        killed = time.monotonic()
        time.sleep(2)
        plane.start_api()
        while not answered or answered[-1] < killed:
            assert any(asker.is_alive() for asker in askers), errors
            time.sleep(0.05)
    back.set()
    for asker in askers:
        asker.join()
    assert errors == []
    assert any("does not respond, trying again: GET /api/v1/namespaces/" in line for line in said)
    assert any("responds again" in line for line in said)


def test_a_server_that_stays_away_is_given_up_after_the_patience(plane, space) -> None:
    cluster = Cluster(patience_s=1.5)
    with plane.api_killed():
        begun = time.monotonic()
        with pytest.raises(ClusterError) as caught:
            cluster.list(CONFIG_MAP, space.name)
        assert time.monotonic() - begun >= 1.5
        with pytest.raises(ClusterError, match="tried for 0 s"):
            cluster.with_patience(0).version()
    text = str(caught.value)
    assert f"GET /api/v1/namespaces/{space.name}/configmaps" in text
    assert plane.address in text
    assert "refused" in text
    assert "tried for 2 s" in text
    assert caught.value.status == 0


def test_an_outage_is_said_once_however_many_calls_it_meets(plane, space) -> None:
    said: list[str] = []
    cluster = Cluster(patience_s=0.3, log=said.append)
    with plane.api_killed():
        for copy in (cluster, cluster.with_patience(0.2), cluster):
            with pytest.raises(ClusterError):
                copy.version()
    assert len(said) == 1 and "does not respond" in said[0]
    assert cluster.with_patience(60).version()
    assert "responds again" in said[-1]


def test_a_server_that_takes_calls_but_does_not_answer_is_given_up_too(plane, space) -> None:
    cluster = Cluster(patience_s=1.5)
    assert cluster.is_ready()
    with plane.api_frozen(), pytest.raises(ClusterError, match=r"timed out.*tried for 2 s"):
        cluster.list(CONFIG_MAP, space.name)
    assert cluster.list(CONFIG_MAP, space.name)


def test_a_busy_server_is_asked_again_when_it_says(front, space) -> None:
    busy = (429, {"Retry-After": "2"}, {"kind": "Status", "message": "too many requests"})
    sick = (503, {}, "not even JSON")
    page = (200, {}, "<html>please log in</html>")
    between = front(busy, sick, page)
    said: list[str] = []
    assert Cluster(log=said.append).list(CONFIG_MAP, space.name)
    times = [at for at, _, _ in between.seen]
    assert len(times) == 4
    assert times[1] - times[0] >= 2
    assert len(said) == 2
    assert "too many requests" in said[0]

    between.fates += [(429, {"Retry-After": "3600"}, {"message": "too many requests"})] * 2
    with pytest.raises(ClusterError, match=r"too many requests \(tried for 1 s\)") as caught:
        Cluster(patience_s=1).list(CONFIG_MAP, space.name)
    assert caught.value.status == 429


def test_what_waiting_cannot_mend_is_not_tried_again(front, space) -> None:
    between = front((400, {}, {"message": "what is that?"}))
    with pytest.raises(ClusterError, match=r"what is that\?"):
        Cluster().list(CONFIG_MAP, space.name)
    assert len(between.seen) == 1


def test_a_change_whose_answer_is_lost_is_sent_again(front, space) -> None:
    between = front(LOSE, FORWARD, LOSE)
    with pytest.raises(ConflictError, match="already exists"):
        Cluster().create(CONFIG_MAP, space.name, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    change = {"metadata": {"name": "one"}, "data": {"b": "2"}}
    assert Cluster().replace(CONFIG_MAP, space.name, change)["data"] == {"b": "2"}
    assert [method for _, method, _ in between.seen] == ["POST", "POST", "PUT", "PUT"]


def test_another_server_with_another_certificate_is_told_at_once(plane, tmp_path: Path, monkeypatch) -> None:
    other = tmp_path / "other.crt"
    other.write_text((plane.folder / "certificates" / "ca.crt").read_text())
    config = plane.kubeconfig.read_text().replace(str(plane.folder / "certificates" / "apiserver.crt"), str(other))
    (tmp_path / "kubeconfig").write_text(config)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with pytest.raises(ClusterError, match="is not the server that the kubeconfig means"):
        Cluster().version()


def test_a_wrong_token_is_told_at_once(front, space) -> None:
    refused = (401, {}, {"kind": "Status", "message": "Unauthorized"})
    between = front(refused, FORWARD, refused)
    with pytest.raises(ForbiddenError, match="Unauthorized") as caught:
        Cluster().list(CONFIG_MAP, space.name)
    assert caught.value.status == 401
    assert [path.partition("?")[0] for _, _, path in between.seen][1:2] == ["/readyz"] and len(between.seen) == 3


def test_a_real_server_refuses_a_wrong_token(plane, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.write_kubeconfig(tmp_path / "kubeconfig", "stale")))
    cluster = Cluster(log=pytest.fail)
    assert cluster.is_ready(anonymous=True) and not cluster.is_ready()
    with pytest.raises(ForbiddenError, match="Unauthorized"):
        cluster.list(CONFIG_MAP, "default")


def test_an_address_that_never_answered_is_given_up_sooner(plane, monkeypatch) -> None:
    monkeypatch.setattr(keeper, "_FIRST_S", 1.0)
    declared = Declared.of({"kind": "kubernetes"}, "here", only_cluster=True)
    mine = keeper.Keeper(declared, threading.Event(), lambda _: None, lambda _: None)
    with plane.api_killed(), pytest.raises(ClusterError, match="tried for 1 s"):
        mine.check_reachable()
    mine.check_reachable()


def test_whether_there_is_a_namespace(plane, space, tmp_path: Path, monkeypatch) -> None:
    assert Cluster().has_namespace(space.name) is True
    assert Cluster().has_namespace("nobody-s") is False
    monkeypatch.setenv("KUBECONFIG", str(space.kubeconfig(tmp_path / "user", READ_ONLY)))
    assert Cluster().has_namespace("nobody-s") is None


@pytest.mark.parametrize(
    ("content", "context", "said"),
    [
        (None, None, "the current context of the kubeconfig can't be used"),
        ("{]", None, "the current context of the kubeconfig can't be used"),
        ("apiVersion: v1", "lab", "the context 'lab' of the kubeconfig can't be used"),
        ("apiVersion: v1\nkind: Config\ncontexts: []\nusers: []\nclusters: []", "lab", "the context 'lab'.*lab"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch, content, context, said: str) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(LoadstoneError, match=said):
        Cluster(context)


def test_kubeconfig_may_be_several_files(plane, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "absent"), str(plane.kubeconfig)]))
    assert Cluster("plane").version()
