"""Invariant 2 on a real cluster: killed, contended, without API server or permissions; always restored."""

import os
import random
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from cluster.api import wait_until
from cluster.control_plane import ControlPlane
from cluster.shop import MEASURED, Gateway, Shop, record_of, shop_sweep
from loadstone.collect.targets.kubernetes.rights import needed, roles
from loadstone.collect.targets.kubernetes.settings import Declared
from support.checkout import Checkout, kill_all

SMALL = {"variants": ["plain", "filter"], "rates": [30], "runs": 2}


@pytest.fixture
def checkout(shop: Shop, pristine: Path, tmp_path: Path, served: Gateway) -> Checkout:
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url, **SMALL)
    checkout.run("--cores", "1", "open")
    return checkout


def wait_for(checkout: Checkout, process: subprocess.Popen[str], what: str) -> None:
    """Wait until the cluster's log says something; fails when the workflow ends before."""
    log = checkout.path / "logs/cluster.log"

    def says() -> bool:
        assert process.poll() is None, process.stdout and process.stdout.read()
        return log.exists() and what in log.read_text()

    wait_until(says, f"{what!r} in {log}")


def wait_up(shop: Shop, variant: str, process: subprocess.Popen[str]) -> None:
    def is_up() -> bool:
        assert process.poll() is None, process.stdout and process.stdout.read()
        return len(shop.spaces[variant].pods("front")) == MEASURED

    wait_until(is_up, f"pods of {variant}")


def test_killed_at_once_the_next_invocation_puts_back_first_and_goes_on(
    plane: ControlPlane, shop: Shop, checkout: Checkout
) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "filter", process)
    kill_all(checkout, process)
    assert record_of(shop) is not None and shop.state() != before
    kept = {name: digest for name, digest in checkout.contents().items() if ".part/" not in name}

    output = checkout.run("--cores", "all", "attacks")

    assert "after the sweep of" in output
    assert output.index("after the sweep of") < output.index("acquired https")
    assert len(checkout.results()) == 4 and kept.items() <= checkout.contents().items()
    assert shop.state() == before and record_of(shop) is None


# A minute each: `make test` leaves them out, .ci/run takes some.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("LOADSTONE_KILLS", "0"))))
def test_killed_at_any_moment(seed: int, shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    moment = random.Random(seed)
    # Moments of the whole sweep, not only those of its start.
    runs = moment.randrange(4)
    with suppress(AssertionError):
        wait_until(lambda: process.poll() is not None or len(checkout.results()) >= runs, "runs", limit_s=120)
    time.sleep(moment.uniform(0, 7 if runs == 0 else 4))
    kill_all(checkout, process)
    kept = {name: digest for name, digest in checkout.contents().items() if ".part/" not in name}
    finished = len(checkout.results())
    assert finished >= min(runs, 4)

    output = checkout.run("--cores", "all", "attacks")

    assert len(re.findall(r"\[\d+ of 4\]", output)) <= 4 - finished
    assert len(checkout.results()) == 4 and kept.items() <= checkout.contents().items()
    assert shop.state() == before and record_of(shop) is None


def test_snakemake_alone_killed_the_keeper_puts_back_by_itself(shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "filter", process)
    process.kill()
    process.communicate()
    checkout.wait_idle(60)
    assert shop.state() == before and record_of(shop) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_by_a_signal_it_puts_back_before_it_ends(number: int, shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "plain", process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    checkout.wait_idle(60)
    assert process.returncode != 0 and "is as it was" in output
    assert shop.state() == before and record_of(shop) is None


def test_the_keeper_killed_the_sweep_stops_and_the_next_puts_back(shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "plain", process)
    (keeper,) = [
        each for each in checkout.processes() if "loadstone.collect.targets.kubernetes.keeper" in each.cmdline()
    ]
    keeper.kill()
    collected = len(checkout.results())
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "the process that keeps the target has ended" in output
    assert "the process that keeps the cluster was killed by SIGKILL" in output and "needs your attention" in output
    assert len(checkout.results()) == collected, "nothing counts that was measured without a keeper"
    assert shop.state() != before
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 4 and shop.state() == before


def test_a_run_during_which_somebody_changed_the_cluster_does_not_count(
    shop: Shop, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    before = shop.state()
    changes = {"variants": ["plain"], "runs": 1, "duration": "4s"}
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url, **SMALL | changes)
    checkout.run("--cores", "1", "open")
    process = checkout.start("--cores", "all", "attacks")
    wait_until(lambda: len(served.asked) > 10 or process.poll() is not None, "the attack")
    shop.spaces["istio"].scale("back", 1)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert f"{shop.name('istio')}/back: spec.replicas is 1 instead of 0" in output
    (failure,) = checkout.archive.rglob("1.failure.1.json")
    assert "somebody else changed the cluster during the run" in failure.read_text()
    assert len(checkout.results()) == 1, "it was tried again"
    assert shop.state() == before


def test_what_the_cluster_refuses_to_put_back_stops_nothing_else(
    plane: ControlPlane, shop: Shop, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = Declared.of(shop.target("http://x/"), "here")
    grant(shop, declared, ())
    before = shop.state()
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", str(shop.control.token_kubeconfig(tmp_path / "kubeconfig", "loadstone")))
        process = checkout.start("--cores", "all", "attacks")
        wait_up(shop, "plain", process)
        shop.plane.api.delete("RoleBinding", shop.name("istio"), "loadstone")
        output, _ = process.communicate(timeout=300)
    assert process.returncode != 0 and "what was refused is still recorded" in output, output
    assert record_of(shop) is not None
    left = {purpose for purpose, state in shop.state().items() if state != before[purpose]}
    assert left == {"istio"}
    checkout.run("--cores", "1", "restore")
    grant(shop, declared, ())
    assert shop.state() == before and record_of(shop) is None


def test_restore_from_another_checkout(
    shop: Shop, checkout: Checkout, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    """Without the disk of the machine that died; and not while somebody measures."""
    before = shop.state()
    elsewhere = shop_sweep(pristine, tmp_path / "elsewhere", shop, served.url, **SMALL)
    assert "there is nothing to restore" in elsewhere.run("--cores", "1", "restore")
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "filter", process)
    kill_all(checkout, process)
    # Meanwhile somebody scales a deployment and makes another anew.
    shop.spaces["istio"].scale("back", 7)
    output = elsewhere.run("--cores", "1", "restore", expect=1)
    assert "not restored, because" in output and f"{shop.name('istio')}/back: spec.replicas is now 7" in output
    state = shop.state()
    assert state["istio"]["Deployment back"]["spec"].pop("replicas") == 7
    assert before["istio"]["Deployment back"]["spec"].pop("replicas") == 1
    assert state == before and record_of(shop) is None
    # The first machine has a record of its own that is done with.
    assert "there is nothing to restore" in checkout.run("--cores", "1", "restore")


def test_a_record_that_somebody_deleted_is_on_disk(shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "filter", process)
    kill_all(checkout, process)
    shop.plane.api.delete("ConfigMap", shop.control.name, "loadstone-record")
    checkout.run("--cores", "1", "restore")
    assert shop.state() == before


def test_two_sweeps_one_waits_and_takes_over_when_the_other_is_killed(
    shop: Shop, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    before = shop.state()
    other, checkout = (
        shop_sweep(pristine, tmp_path / name, shop, served.url, **SMALL | {"runs": 4}) for name in ("other", "first")
    )
    for each in (other, checkout):
        each.run("--cores", "1", "open")
    first = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "plain", first)
    second = other.start("--cores", "all", "attacks")
    wait_for(other, second, "waiting")
    time.sleep(3)
    assert len(other.results()) == 0
    kill_all(checkout, first)
    output, _ = second.communicate(timeout=600)
    assert second.returncode == 0, output
    assert "after the sweep of" in output and len(other.results()) == 8
    assert shop.state() == before and record_of(shop) is None
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 8 and shop.state() == before


def test_two_sweeps_one_after_the_other(
    shop: Shop, checkout: Checkout, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    """On one machine too: nobody holds the machine while he waits for the cluster."""
    before = shop.state()
    other = shop_sweep(pristine, tmp_path / "other", shop, served.url, **SMALL)
    other.run("--cores", "1", "open")
    first = checkout.start("--cores", "all", "attacks")
    wait_for(checkout, first, "acquired https")
    second = other.start("--cores", "all", "attacks")
    for process, of in ((first, checkout), (second, other)):
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0 and len(of.results()) == 4, output
    assert shop.state() == before


def test_the_api_server_away_for_a_while_at_any_stage(plane: ControlPlane, shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "plain", process)  # readiness
    with plane.api_killed():
        time.sleep(10)
    wait_until(lambda: list(checkout.archive.rglob("test.bin")) or process.poll() is not None, "an attack")
    with plane.api_killed():
        time.sleep(10)
    wait_until(lambda: len(checkout.results()) == 4 or process.poll() is not None, "the last run", 600)
    with plane.api_killed():  # putting back
        time.sleep(10)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert "responds again" in output
    assert len(checkout.results()) == 4 and shop.state() == before


def test_the_api_server_gone_for_good(plane: ControlPlane, shop: Shop, checkout: Checkout) -> None:
    before = shop.state()
    config = checkout.path / "config/config.yaml"
    config.write_text(config.read_text().replace("lease_duration: 5s", "lease_duration: 5s\n  patience: 3s"))
    process = checkout.start("--cores", "all", "attacks")
    wait_up(shop, "filter", process)
    with plane.api_killed():
        output, _ = process.communicate(timeout=300)
        checkout.wait_idle(60)
        assert process.returncode != 0
        assert "(tried for 3 s)" in output and "the cluster may not be as it was" in output
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 4 and shop.state() == before


def test_with_the_printed_roles_a_service_account_can_do_a_sweep(
    plane: ControlPlane, shop: Shop, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = Declared.of(shop.target("http://x/"), "here")
    grant(shop, declared, ())
    before = shop.state()
    monkeypatch.setenv("KUBECONFIG", str(shop.control.token_kubeconfig(tmp_path / "kubeconfig", "loadstone")))
    output = checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 4 and shop.state() == before, output


def test_each_missing_right_is_named_and_nothing_was_changed(
    plane: ControlPlane, shop: Shop, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loadstone.collect.targets.kubernetes.client import Cluster  # noqa: PLC0415 - takes a second
    from loadstone.collect.targets.kubernetes.rights import missing_rights  # noqa: PLC0415

    declared = Declared.of(shop.target("http://x/"), "here")
    rights = needed(declared)
    grant(shop, declared, ())
    monkeypatch.setenv("KUBECONFIG", str(shop.control.token_kubeconfig(tmp_path / "kubeconfig", "loadstone")))
    cluster = Cluster()
    for missing in rights:
        grant(shop, declared, (missing,))
        wait_until(lambda missing=missing: missing_rights(cluster, rights) == [missing], f"only {missing} missing")
    grant(shop, declared, (rights[0], rights[-1]))
    wait_until(lambda: len(missing_rights(cluster, rights)) == 2, "two missing")
    before = shop.state()
    output = checkout.run("--cores", "all", "attacks", expect=1)
    assert str(rights[0]) in output and str(rights[-1]) in output and "nothing was changed" in output
    assert shop.state() == before and len(checkout.results()) == 0


def grant(shop: Shop, declared: Declared, without: tuple[object, ...]) -> None:
    """Bind a ServiceAccount to the printed Roles, less some rights."""
    api = shop.plane.api
    with suppress(Exception):
        shop.control.create("ServiceAccount", "loadstone")
    subject = {"kind": "ServiceAccount", "name": "loadstone", "namespace": shop.control.name}
    for manifest in roles(declared, subject):
        if manifest["kind"] == "Role":
            for right in without:
                for rule in manifest["rules"]:
                    here = manifest["metadata"]["namespace"] == right.namespace
                    if here and rule["apiGroups"] == [right.group] and rule["resources"] == [right.resource]:
                        rule["verbs"] = [verb for verb in rule["verbs"] if verb != right.verb]
            manifest["rules"] = [rule for rule in manifest["rules"] if rule["verbs"]]
        api.apply(manifest)
