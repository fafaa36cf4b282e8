"""One holder at a time, against a real API server: no two winners, no early takeover, no trust in anybody's clock."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from cluster.api import wait_until
from cluster.front import LOSE, Front
from conftest import PROJECT
from loadstone.collect.targets.kubernetes.client import Cluster, ClusterError, ForbiddenError
from loadstone.collect.targets.kubernetes.lease import Lease, LeaseLostError
from loadstone.errors import LoadstoneError

NAME = "loadstone"


def never() -> bool:
    return False


@pytest.fixture
def space(namespace):
    return namespace("lease")


@pytest.fixture
def lease(space) -> Callable[..., Lease]:
    """Makes a Lease as a holder of its own; many holders, one Lease."""

    def make(who: str = "ann@here", duration_s: float = 30, patience_s: float = 60, **more) -> Lease:
        return Lease(Cluster(patience_s=patience_s), space.name, NAME, f"{who} {uuid4()}", duration_s, **more)

    return make


def put(space, holder: str, renewed: str, duration_s: int) -> None:
    """A Lease as somebody else has left it."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration_s, "renewTime": renewed, "acquireTime": renewed}
    space.create("Lease", NAME, spec=spec)


def test_taken_said_renewed_and_released(plane, space, lease) -> None:
    mine = lease(duration_s=30)
    assert not mine.is_held()
    assert mine.holder() == "nobody"
    assert mine.acquire(pytest.fail, never)
    assert mine.is_held()
    found = space.get("Lease", NAME)
    assert found["spec"]["holderIdentity"].startswith("ann@here ")
    assert found["spec"]["leaseDurationSeconds"] == 30
    assert found["metadata"]["annotations"] == {"loadstone/folder": str(Path.cwd())}
    mine.renew()
    renewed = space.get("Lease", NAME)["spec"]
    assert renewed["renewTime"] > found["spec"]["renewTime"]
    assert {**renewed, "renewTime": ""} == {**found["spec"], "renewTime": ""}
    assert mine.holder().startswith("ann@here ")

    mine.release()
    assert not mine.is_held()
    assert not mine.lost.is_set()
    assert space.get("Lease", NAME)["spec"].get("holderIdentity", "") == ""
    with pytest.raises(LeaseLostError, match="is no longer held"):
        mine.renew()
    writes = [call for call in plane.calls.writes(namespaces={space.name}) if call.resource == "leases"]
    assert [call.verb for call in writes] == ["create", "update", "update"]


def test_a_release_lets_the_next_one_in_at_once_and_it_was_told_for_whom_it_waits(lease) -> None:
    mine, yours, said = lease(duration_s=600), lease("bob@there", 600), []
    mine.acquire(pytest.fail, never)
    waiter = threading.Thread(target=yours.acquire, args=[said.append, never])
    waiter.start()
    wait_until(lambda: said, "the message")
    assert not yours.is_held()
    mine.release()
    waiter.join(timeout=60)
    assert yours.is_held()
    (message,) = said
    assert message.startswith("waiting: ann@here ")
    assert f"(in {Path.cwd()}, since {datetime.now(UTC).year}-" in message
    assert "holds the cluster https://127.0.0.1" in message


def test_waiting_ends_when_it_is_asked_to_and_leaves_no_trace(space, lease) -> None:
    lease().acquire(pytest.fail, never)
    before = space.get("Lease", NAME)
    polls: list[int] = []
    assert lease("bob@there").acquire(lambda _: None, lambda: bool(polls.append(1)) or len(polls) > 3) is False
    assert space.get("Lease", NAME) == before


def test_a_new_holder_is_said_again(space, lease) -> None:
    put(space, "cleo@a", "2026-01-01T00:00:00.000000Z", 600)
    said: list[str] = []
    stopped = threading.Event()
    waiter = threading.Thread(target=lease().acquire, args=[said.append, stopped.is_set])
    waiter.start()
    wait_until(lambda: len(said) == 1, "the first message")
    space.api.patch("Lease", space.name, NAME, {"spec": {"renewTime": "2026-01-01T00:00:09.000000Z"}})
    time.sleep(1.5)
    space.api.patch("Lease", space.name, NAME, {"spec": {"holderIdentity": "dora\u001b[31m\n@b"}})
    wait_until(lambda: len(said) == 2, "the second message")
    stopped.set()
    waiter.join()
    assert "cleo@a (since 2026-01-01 00:00:00 UTC)" in said[0]
    assert "dora?[31m?@b" in said[1]


@pytest.mark.parametrize("renewed", ["2001-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z"])
def test_nobody_s_clock_is_trusted(space, lease, renewed: str) -> None:
    put(space, "cleo@a", renewed, 3)
    begun = time.monotonic()
    said: list[str] = []
    # The holder's duration counts, not the waiter's.
    assert lease(duration_s=1).acquire(said.append, never)
    assert time.monotonic() - begun >= 3
    assert "taking over: cleo@a" in said[-1]


@pytest.mark.slow
def test_a_holder_that_dies_is_followed_after_its_time_and_not_before(lease) -> None:
    mine, yours = lease(duration_s=6), lease("bob@there", 6)
    mine.acquire(pytest.fail, never)
    taken: list[float] = []
    waiter = threading.Thread(target=lambda: (yours.acquire(lambda _: None, never), taken.append(time.monotonic())))
    waiter.start()
    with mine.renewing():
        time.sleep(9)
        assert not taken
    last = mine._renewed_at  # the thread has ended: nobody renews it any more
    waiter.join(timeout=60)
    assert not mine.is_held()
    assert taken[0] - _as_monotonic(last) >= 6
    with pytest.raises(LeaseLostError, match=r"was taken over: .*bob@there"):
        mine.renew()
    assert mine.lost.is_set()
    assert mine.holder().startswith("bob@there")
    # Once lost, it never comes back, nor does it disturb its new holder.
    with pytest.raises(LeaseLostError):
        mine.renew()
    mine.release()
    yours.renew()


def _as_monotonic(clock_s: float) -> float:
    return clock_s - time.clock_gettime(time.CLOCK_BOOTTIME) + time.monotonic()


def test_a_lost_lease_is_noticed_while_renewing(space, lease) -> None:
    mine, said = lease(duration_s=3), []
    mine.acquire(said.append, never)
    with mine.renewing():
        space.api.patch("Lease", space.name, NAME, {"spec": {"holderIdentity": "bob@there"}})
        assert mine.lost.wait(60)
        assert not mine.is_held()
    assert "was taken over: bob@there" in said[-1]
    assert space.get("Lease", NAME)["spec"]["holderIdentity"] == "bob@there"


def test_one_taken_and_released_by_another_is_lost_too(space, lease) -> None:
    mine = lease()
    mine.acquire(pytest.fail, never)
    space.api.patch("Lease", space.name, NAME, {"spec": {"holderIdentity": ""}})
    with pytest.raises(LeaseLostError):
        mine.renew()


def test_what_others_note_on_it_or_its_removal_does_not_lose_it(space, lease) -> None:
    mine = lease()
    mine.acquire(pytest.fail, never)
    space.api.patch("Lease", space.name, NAME, {"metadata": {"annotations": {"note": "hello"}}})
    mine.renew()
    assert space.get("Lease", NAME)["metadata"]["annotations"]["note"] == "hello"
    space.api.delete("Lease", space.name, NAME)
    mine.renew()
    assert space.get("Lease", NAME)["spec"]["holderIdentity"].startswith("ann@here")
    assert mine.is_held()


def test_many_waiters_take_turns_in_threads(lease) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        mine = lease()
        for _ in range(3):
            assert mine.acquire(lambda _: None, never)
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()
            mine.release()

    workers = [threading.Thread(target=work) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == [1] * 15


def test_of_many_who_find_it_expired_one_wins(plane, space, lease) -> None:
    put(space, "cleo@a", "2001-01-01T00:00:00.000000Z", 2)
    won: list[Lease] = []
    stopped = threading.Event()

    def work() -> None:
        mine = lease(duration_s=600)
        if mine.acquire(lambda _: None, stopped.is_set):
            won.append(mine)

    workers = [threading.Thread(target=work) for _ in range(5)]
    for worker in workers:
        worker.start()
    wait_until(lambda: won, "a winner")
    time.sleep(2)
    stopped.set()
    for worker in workers:
        worker.join()
    assert len(won) == 1
    updates = [call for call in plane.calls.writes(namespaces={space.name}) if call.resource == "leases"]
    assert [call.verb for call in updates] == ["create", "update"]


_TURNS = """
import sys, time
from pathlib import Path
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.lease import Lease
namespace, who, file, turns, pause = sys.argv[1:]
mine = Lease(Cluster(), namespace, "loadstone", who, 6)
for _ in range(int(turns)):
    assert mine.acquire(lambda text: None, lambda: False)
    with mine.renewing(), open(file, "a", buffering=1) as log:
        log.write(f"in {who}\\n")
        time.sleep(float(pause))
        log.write(f"out {who}\\n")
        mine.release()
"""


def process(space, who: str, file: Path, turns: int, pause_s: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _TURNS, space.name, who, str(file), str(turns), str(pause_s)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(PROJECT / "scripts")})


def test_two_processes_take_turns(space, tmp_path: Path) -> None:
    file = tmp_path / "turns"
    both = [process(space, who, file, 5, 0.1) for who in ("one", "two")]
    assert [each.wait() for each in both] == [0, 0]
    lines = file.read_text().splitlines()
    assert len(lines) == 20
    for entered, left in zip(lines[::2], lines[1::2], strict=True):
        assert entered.split() == ["in", left.split()[1]]
        assert left.startswith("out")


@pytest.mark.slow
def test_a_killed_process_is_followed_by_the_next(space, tmp_path: Path) -> None:
    file = tmp_path / "turns"
    killed = process(space, "one", file, 1, 600)
    wait_until(lambda: file.exists() and "in one" in file.read_text(), "the first holder")
    follower = process(space, "two", file, 1, 0)
    time.sleep(8)  # longer than the Lease lasts unless it is renewed
    assert file.read_text() == "in one\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert follower.wait() == 0
    assert file.read_text().splitlines() == ["in one", "in two", "out two"]


@pytest.mark.slow
def test_a_short_outage_costs_nothing(plane, space, lease) -> None:
    mine, yours, said, theirs = lease(duration_s=12), lease("bob@there", 12), [], []
    mine.acquire(said.append, never)
    stopped = threading.Event()
    waiter = threading.Thread(target=yours.acquire, args=[theirs.append, stopped.is_set])
    waiter.start()
    with mine.renewing():
        with plane.api_killed():
            time.sleep(4)
        before = space.get("Lease", NAME)["spec"]["renewTime"]
        wait_until(lambda: space.get("Lease", NAME)["spec"]["renewTime"] > before, "a renewal")
        assert mine.is_held()
    stopped.set()
    waiter.join()
    assert not mine.lost.is_set()
    assert not yours.is_held()


@pytest.mark.slow
def test_a_long_outage_is_not_counted_against_the_holder(plane, space, lease) -> None:
    mine, yours, said = lease(duration_s=6), lease("bob@there", 6), []
    mine.acquire(said.append, never)
    stopped = threading.Event()
    waiter = threading.Thread(target=yours.acquire, args=[lambda _: None, stopped.is_set])
    waiter.start()
    with mine.renewing():
        with plane.api_killed():
            wait_until(lambda: not mine.is_held(), "the end of what is sure")
            time.sleep(1)
        wait_until(mine.is_held, "a renewal")
        time.sleep(7)
    stopped.set()
    waiter.join()
    assert not mine.lost.is_set()
    assert not yours.is_held()
    assert any("could not be renewed, trying again" in line for line in said)
    assert any("is renewed again" in line for line in said)


def test_a_frozen_server_makes_no_renewal_hang(plane, lease) -> None:
    mine = lease(duration_s=3)
    mine.acquire(lambda _: None, never)
    with mine.renewing():
        with plane.api_frozen():
            wait_until(lambda: not mine.is_held(), "the end of what is sure")
        wait_until(mine.is_held, "a renewal")
    mine.release()


def test_waiting_for_a_server_that_stays_away_ends(plane, lease) -> None:
    mine = lease(duration_s=3, patience_s=2)
    asked: list[int] = []
    with plane.api_killed():
        with pytest.raises(ClusterError, match="refused"):
            mine.acquire(lambda _: None, never)
        # It is asked often enough whether to go on.
        assert lease(duration_s=3).acquire(lambda _: None, lambda: bool(asked.append(1)) or len(asked) > 1) is False


def test_lost_answers_do_not_lose_the_lease(plane, space, lease, tmp_path: Path, monkeypatch) -> None:
    with Front(plane) as front:
        monkeypatch.setenv("KUBECONFIG", str(front.kubeconfig(tmp_path / "front")))
        mine = lease()
        front.fates += ["forward", LOSE]
        assert mine.acquire(pytest.fail, never)
        front.fates += [LOSE]
        mine.renew()
        assert mine.is_held()
        front.fates += ["forward", LOSE]
        mine.release()
    assert space.get("Lease", NAME)["spec"].get("holderIdentity", "") == ""


LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}


def test_the_rights_that_it_needs(namespace, lease, space, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(space.kubeconfig(tmp_path / "user", [LEASES])))
    mine = lease()
    assert mine.acquire(pytest.fail, never)
    mine.renew()
    mine.release()
    with pytest.raises(ForbiddenError, match="cannot get"):
        Lease(Cluster(), namespace().name, NAME, "me", 30).acquire(pytest.fail, never)


def test_a_missing_namespace_is_made_where_one_may(plane, namespace, tmp_path: Path, monkeypatch) -> None:
    missing = f"missing-{uuid4().hex[:8]}"
    account = namespace()
    rules = [LEASES, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    user = account.kubeconfig(tmp_path / "user", rules)
    # One that may use Leases anywhere, but make no namespace.
    role = plane.api.create("ClusterRole", {"metadata": {"name": missing}, "rules": [LEASES]})["metadata"]["name"]
    subject = {"kind": "ServiceAccount", "name": "tester", "namespace": account.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    plane.api.create("ClusterRoleBinding", {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]})
    monkeypatch.setenv("KUBECONFIG", str(user))
    with pytest.raises(LoadstoneError, match=f"you may not create it: kubectl create namespace {missing}"):
        Lease(Cluster(), missing, NAME, "me", 30).acquire(pytest.fail, never)
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    mine = Lease(Cluster(), missing, NAME, "me", 30)
    assert mine.acquire(pytest.fail, never)
    assert plane.api.get("Lease", missing, NAME)["spec"]["holderIdentity"] == "me"
