"""The sweeps of config/examples that measure deployments of a cluster, behind a gateway that terminates TLS."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster.control_plane import ControlPlane
from cluster.namespace import Namespace
from cluster.shop import record_of_namespace
from conftest import PROJECT
from support.checkout import Checkout
from support.standin import StandIn

PAGE = "<title>Simple Bookstore App</title> by nginx"


@pytest.fixture
def front(tmp_path: Path) -> Iterator[StandIn]:
    server = StandIn(tmp_path / "gateway", lambda *_: (200, {}, PAGE), "gateway.internal")
    yield server
    server.close()


@pytest.mark.parametrize(
    ("name", "deployment", "pods"),
    [("prose-sweep", "productpage", 10), ("uds", "nginx", None)],
)
def test_its_variants_are_measured_over_tls_and_all_is_put_back(
    plane: ControlPlane,
    pristine: Path,
    tmp_path: Path,
    front: StandIn,
    *,
    name: str,
    deployment: str,
    pods: int | None,
) -> None:
    config = yaml.safe_load((PROJECT / f"config/examples/{name}/config.yaml").read_text())
    target = config["target"]
    control = Namespace(plane, "loadstone")
    spaces = {each["namespace"]: Namespace(plane, "example") for each in target["variants"].values()}
    sampled = [Namespace(plane, "sampled").name for _ in target["resources"]["namespaces"]]
    for space in spaces.values():
        space.deploy(deployment, 1)
    for space in spaces.values():
        space.wait_ready(deployment, 1)
    before = {given: space.state() for given, space in spaces.items()}
    for variant in target["variants"].values():
        variant.update({"namespace": spaces[variant["namespace"]].name, "resolve": f"127.0.0.1:{front.port}"})
        variant["tls"] = {"insecure": True}
    target.update({"context": "plane", "namespace": control.name, "lease_duration": "5s", "ready_timeout": "120s"})
    target["resources"]["namespaces"] = sampled
    config["sweep"].update({"rates": [20], "runs": 1, "duration": "500ms"})
    config["sweep"]["warmup"]["duration"] = "100ms"
    checkout = Checkout(pristine, tmp_path / "checkout")
    checkout.replace(**config)
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    records = [json.loads(file.read_text()) for file in checkout.archive.rglob("*.run.json")]
    assert len(records) == len(config["sweep"]["variants"])
    for record in records:
        (negotiated,) = record["negotiated"]
        assert negotiated["protocol"] == "http1" and negotiated["tls"] == "TLS 1.3" and negotiated["certificate"]
        assert pods is None or len(record["cluster"]["pods"]) == pods
    assert {host for _, _, host in front.seen} == {
        variant.get("headers", {}).get("Host", variant["url"].split("/")[2]) for variant in target["variants"].values()
    }
    assert record_of_namespace(control) is None
    assert {given: space.state() for given, space in spaces.items()} == before
