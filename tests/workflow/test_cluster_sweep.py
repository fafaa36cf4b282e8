"""Sweeps of a real cluster: one variant up at a time, never attacked before it is ready, and all restored."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from cluster.control_plane import ControlPlane
from cluster.recorder import PodLife
from cluster.shop import VARIANTS, Gateway, Shop, record_of, shop_sweep
from support.generators import require

WAITS_FOR_THE_END = """
import pathlib, time
given_up = time.monotonic() + 120
while "is as it was" not in pathlib.Path("logs/cluster.log").read_text():
    assert time.monotonic() < given_up, "the cluster is not restored before tables are made"
    time.sleep(0.1)
"""


def test_a_sweep_has_one_variant_up_at_a_time_and_leaves_the_cluster_as_it_was(
    plane: ControlPlane, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    shop = Shop(plane, slow=True)
    before = shop.state()
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url, rates=[30])
    plan = checkout.run("--cores", "1", "plan")
    assert "spec.template.spec.containers[app].image: example/app:1 -> example/app:2" in plan
    assert "would plan 6 runs" in plan
    checkout.run("--cores", "1", "open")
    assert shop.state() == before, "a plan changes nothing"
    # Tables are made when the cluster is free again.
    script = checkout.path / "scripts/convert.py"
    script.write_text(WAITS_FOR_THE_END + script.read_text())

    output = checkout.run("--cores", "all")

    assert len(checkout.results()) == 6
    assert "is as it was" in output
    assert record_of(shop) is None
    assert output.count("the cluster has no metrics API") == 1
    records = [json.loads(file.read_text()) for file in checkout.archive.rglob("*.run.json")]
    problems = [[each["text"] for each in record["sampling"]["problems"]] for record in records]
    assert len(problems) == 6 and all("no metrics API" in text for (text,) in problems), problems
    shop.wait_as_found()
    assert shop.state() == before

    pods = plane.calls.pods(shop.namespaces)
    assert {variant for _, variant in served.asked} == set(VARIANTS)
    for moment, variant in served.asked:
        assert_only(shop, pods, variant, moment)
    assert_flux(plane, shop)
    images = {pod_image(plane, shop, "filter", life) for life in pods if life.namespace == shop.name("filter")}
    assert images == {"example/app:1", "example/app:2"}
    assert (checkout.path / "reports/index.html").exists()


def test_a_sweep_that_fails_gives_the_cluster_back_before_tables_of_others_are_made(
    plane: ControlPlane, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    shop = Shop(plane)
    before = shop.state()
    small = {"variants": ["plain"], "rates": [30], "runs": 1, "retries": 0}
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url, **small)
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    (checkout.path / "logs/cluster.log").unlink()
    target = shop.target(served.url) | {"ready_timeout": "10s"}
    target["variants"]["plain"]["expect"]["body_contains"] = "what it never answers"
    checkout.configure(sweep={"app": "broken"}, target=target)
    checkout.run("--cores", "1", "open")
    script = checkout.path / "scripts/convert.py"
    script.write_text(WAITS_FOR_THE_END + script.read_text())
    output = checkout.run("--cores", "all", "--keep-going", expect=1)
    assert "1 of 1 planned runs have no result" in output
    assert list((checkout.path / "results/tables").rglob("runs/app_dir=shop/**/part.parquet")), output
    assert shop.state() == before and record_of(shop) is None


def assert_only(shop: Shop, pods: list[PodLife], variant: str, moment: datetime) -> None:
    """At that moment exactly the variant's pods were there, all ready, none of any variant terminating."""
    of = {shop.name(name): name for name in VARIANTS}
    there = [life for life in pods if life.is_there(moment) and life.namespace in of]
    assert {of[life.namespace] for life in there} == {variant}, (moment, there)
    assert len(there) == 4 and all(life.is_ready(moment) for life in there), (moment, there)
    if variant == "filter":
        (presidio,) = [life for life in pods if life.is_there(moment) and life.namespace == shop.name("presidio")]
        assert presidio.is_ready(moment)


def assert_flux(plane: ControlPlane, shop: Shop) -> None:
    """Suspended before the first change, resumed after the last; what was suspended before was not touched."""
    writes = plane.calls.writes(namespaces=shop.namespaces)
    ours = [call for call in writes if call.agent.startswith("loadstone") and call.resource != "leases"]
    flux = [(index, call.name) for index, call in enumerate(ours) if call.namespace == shop.name("flux")]
    assert [index for index, _ in flux] == [0, 1, len(ours) - 2, len(ours) - 1]
    assert sorted(name for _, name in flux) == ["apps", "apps", "gateway", "gateway"]


def pod_image(plane: ControlPlane, shop: Shop, variant: str, life: PodLife) -> str:
    created = next(
        call
        for call in plane.calls.all(namespaces={shop.name(variant)})
        if call.resource == "pods" and call.verb == "create" and call.answer["metadata"]["name"] == life.name
    )
    return created.answer["spec"]["containers"][0]["image"]


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["vegeta", "k6", "artillery"])
def test_load_in_stages_by_each_generator(
    plane: ControlPlane, pristine: Path, tmp_path: Path, served: Gateway, generator: str
) -> None:
    if generator != "vegeta":
        require(generator)
    shop = Shop(plane)
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url)
    stages = [{"name": "ramp", "rate": 0, "to": "100%", "duration": "1s"}]
    stages.append({"name": "steady", "rate": "100%", "duration": "1s"})
    config = yaml.safe_load((checkout.path / "config/config.yaml").read_text())
    declared = {"app": "shop", "variants": ["filter"], "rates": [20], "runs": 1}
    checkout.replace(**config | {"sweep": declared | {"shape": stages, "generator": generator}})
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all", "attacks")
    record = json.loads(next(checkout.archive.rglob("1.run.json")).read_text())
    assert [each["phase"] for each in record["phases"]] == ["ramp", "steady"]
    assert [variant for _, variant in served.asked] == ["filter"] * (10 + 20)
    assert record_of(shop) is None
    shop.wait_as_found()
