"""What is told of a cluster before anything of it is held: what is wrong, whose it is, what would be changed."""

import signal
from pathlib import Path

import pytest
from cluster.api import wait_until
from cluster.control_plane import ControlPlane
from cluster.namespace import Namespace
from cluster.shop import Gateway, Shop, record_of, shop_sweep
from support.checkout import Checkout, kill_all

SMALL = {"variants": ["plain", "filter"], "rates": [30], "runs": 1}


@pytest.fixture
def declared(shop: Shop, pristine: Path, tmp_path: Path, served: Gateway) -> Checkout:
    return shop_sweep(pristine, tmp_path / "checkout", shop, served.url, **SMALL)


def writes(plane: ControlPlane, shop: Shop) -> list[str]:
    """What was written of the shop by us, dry runs apart."""
    calls = plane.calls.writes(namespaces=shop.namespaces | {shop.control.name})
    return [f"{call.verb} {call.resource} {call.name}" for call in calls if call.agent.startswith("loadstone")]


def changes_of(plan: str) -> list[str]:
    return [line for line in plan.splitlines() if " -> " in line or ": restarted with" in line]


def test_a_campaign_declared_otherwise_is_refused_before_anything_is_held(
    plane: ControlPlane, shop: Shop, declared: Checkout, served: Gateway
) -> None:
    declared.run("--cores", "1", "open")
    assert "is still open with 2 runs missing" in declared.run("--cores", "1", "open")
    target = shop.target(served.url)
    target["variants"]["filter"]["changes"][0]["image"] = {"app": "example/app:3"}
    declared.replace(target=target)
    for arguments in (("all", "attacks"), ("1", "open"), ("1", "plan")):
        output = declared.run("--cores", *arguments, expect=1)
        assert "filter" in output and "example/app:3" in output, output
    assert "has changed since" in declared.run("--cores", "all", expect=1)
    # A variant that is gone from the configuration is no matter of the other's runs alone.
    del target["variants"]["filter"]
    declared.replace(target=target)
    declared.configure(sweep={"variants": ["plain"]})
    assert "declares no target variant 'filter'" in declared.run("--cores", "all", "attacks", expect=1)
    assert writes(plane, shop) == []


def test_a_next_sweep_declared_while_one_is_open_is_told_by_the_plan(declared: Checkout) -> None:
    declared.run("--cores", "1", "open")
    declared.configure(sweep={"rates": [90]})
    plan = declared.run("--cores", "1", "plan")
    assert "`snakemake --cores 1 open` would refuse" in plan and "sweep.rates" in plan
    assert "2 runs in this order" in plan


def test_a_cluster_that_is_not_as_declared_is_told_when_a_sweep_is_opened(
    plane: ControlPlane, shop: Shop, declared: Checkout, served: Gateway
) -> None:
    target = shop.target(served.url)
    target["variants"]["plain"]["deployments"] = ["front", "bakc"]
    target["variants"]["filter"]["namespace"] = "nobody-s"
    declared.replace(target=target)
    for goal in ("open", "plan"):
        output = declared.run("--cores", "1", goal, expect=1)
        assert f"plain: there is no deployment bakc in the namespace {shop.name('plain')}" in output
        assert "filter: there is no namespace nobody-s" in output
    assert not declared.archive.exists() or not list(declared.archive.glob("*/*/*"))
    assert writes(plane, shop) == []


def test_the_plan_beside_a_sweep_and_after_it_was_killed_says_whose_the_cluster_is(
    shop: Shop, declared: Checkout
) -> None:
    before = shop.state()
    declared.configure(sweep={"duration": "30s", "runs": 2})  # no run ends while plans are asked for
    declared.run("--cores", "1", "open")
    first_plan = declared.run("--cores", "1", "plan")
    assert f"{shop.name('filter')}/front: spec.replicas: 3 -> 0" in first_plan
    assert "containers[app].env[FILTER]: absent -> on" in first_plan
    assert "containers[app].env[LEVEL]: 1 -> absent" in first_plan
    process = declared.start("--cores", "all", "attacks")
    wait_until(lambda: shop.spaces["istio"].get("Deployment", "front")["spec"]["replicas"] == 0, "the sweep")
    plan = declared.run("--cores", "1", "plan")
    assert "has been changed by the sweep of" in plan and "which is running or was killed a moment ago" in plan
    assert f"{shop.name('istio')}/front: spec.replicas: 0 -> 1" in plan
    assert "for the whole sweep" not in plan
    # Neither the sweep nor its page heeds that: it is interrupted by its user alone.
    assert process.poll() is None
    assert "while the sweep is running" in (declared.path / "reports/progress.html").read_text()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    declared.wait_idle(60)
    assert process.returncode != 0 and "is as it was" in output
    assert "the command was interrupted" in (declared.path / "reports/progress.html").read_text()
    assert shop.state() == before and record_of(shop) is None
    assert changes_of(declared.run("--cores", "1", "plan")) == changes_of(first_plan)


def test_a_cluster_that_cannot_be_used_is_told_without_alarm(
    plane: ControlPlane, shop: Shop, declared: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared.run("--cores", "1", "open")
    leave_a_record_of_another_server(declared)
    monkeypatch.setenv("KUBECONFIG", str(plane.write_kubeconfig(tmp_path / "kubeconfig", "stale")))
    output = declared.run("--cores", "all", "attacks", expect=1)
    assert "Unauthorized" in output
    assert "the cluster could not be used, and nothing of it was changed" in output
    assert "attention" not in output
    # Nor does that hide what else is wrong.
    target = shop.target("http://127.0.0.1:9")
    target["variants"]["filter"]["changes"][0]["image"] = {"app": "example/app:3"}
    declared.replace(target=target)
    output = declared.run("--cores", "all", "attacks", expect=1)
    assert "the cluster could not be used" in output and "example/app:3" in output
    assert writes(plane, shop) == []


def test_what_a_folder_left_on_another_server_is_named(shop: Shop, declared: Checkout) -> None:
    before = shop.state()
    leave_a_record_of_another_server(declared)
    declared.run("--cores", "1", "open")
    for arguments in (("1", "plan"), ("1", "restore"), ("all", "attacks")):
        assert "this folder also changed https://other.example:6443" in declared.run("--cores", *arguments)
    assert len(declared.results()) == 2 and shop.state() == before


def test_a_command_that_cannot_write_how_it_goes_on_ends_with_the_cluster_as_it_was(
    shop: Shop, declared: Checkout
) -> None:
    before = shop.state()
    declared.run("--cores", "1", "open")
    (declared.path / "results/.collected/.sweep.jsonl").mkdir(parents=True)
    output = declared.run("--cores", "all", "attacks", expect=1)
    assert "results/.collected/.sweep.jsonl cannot be written" in output and "Traceback" not in output, output
    assert declared.processes() == [] and shop.state() == before and record_of(shop) is None


def leave_a_record_of_another_server(checkout: Checkout) -> None:
    folder = checkout.path / "results/.cluster"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster-other.example-6443.1.json").write_text('{"server": "https://other.example:6443"}')


def test_a_sweep_with_its_lease_elsewhere_is_refused_where_another_measures(
    plane: ControlPlane, shop: Shop, declared: Checkout, tmp_path: Path, served: Gateway
) -> None:
    before, elsewhere = shop.state(), Namespace(plane, "elsewhere")
    other = declared.copy(tmp_path / "other")
    other.configure(target={"namespace": elsewhere.name})
    declared.configure(sweep={"runs": 50})  # more than it has time for until it is killed
    for checkout in (declared, other):
        checkout.run("--cores", "1", "open")
    process = declared.start("--cores", "all", "attacks")
    wait_until(lambda: len(served.asked) > 0 or process.poll() is not None, "an attack")
    assert "a sweep would be refused: deployments of the namespace" in other.run("--cores", "1", "plan")
    refused = "give both the same target.namespace"
    assert refused in other.run("--cores", "all", "attacks", expect=1)
    # Killed, it has still to be restored.
    kill_all(declared, process)
    output = other.run("--cores", "all", "attacks", expect=1)
    assert refused in output and f"with `namespace: {shop.control.name}`" in output
    assert other.results() == []
    # Nor does the folder's own record lead there under another Lease, neither to restore nor to measure.
    changed, collected = shop.state(), declared.results()
    declared.configure(target={"namespace": elsewhere.name})
    for arguments in (("1", "restore"), ("1", "plan"), ("all", "attacks")):
        output = declared.run("--cores", *arguments, expect=1)
        assert f"under the Lease in the namespace {shop.control.name}, not {elsewhere.name}" in output, output
    assert (shop.state(), declared.results()) == (changed, collected)
    declared.configure(target={"namespace": shop.control.name})
    declared.run("--cores", "1", "restore")
    assert shop.state() == before
    other.run("--cores", "all", "attacks")
    assert len(other.results()) == 2 and shop.state() == before
