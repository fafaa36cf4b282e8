"""Sweeps of a real cluster: one variant up at a time, never attacked before it is ready, and all put back."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from cluster.control_plane import ControlPlane
from cluster.recorder import PodLife
from cluster.shop import VARIANTS, Gateway, Shop, gateway, record_of, shop_sweep


@pytest.fixture
def served() -> Iterator[Gateway]:
    with gateway() as found:
        yield found


def test_a_sweep_has_one_variant_up_at_a_time_and_leaves_the_cluster_as_it_was(
    plane: ControlPlane, pristine: Path, tmp_path: Path, served: Gateway
) -> None:
    shop = Shop(plane, slow=True)
    before = shop.state()
    checkout = shop_sweep(pristine, tmp_path / "checkout", shop, served.url)
    plan = checkout.run("--cores", "1", "plan")
    assert "spec.template.spec.containers[app].image: example/app:1 -> example/app:2" in plan
    assert "would plan 12 runs" in plan
    checkout.run("--cores", "1", "open")
    assert shop.state() == before, "a plan changes nothing"

    output = checkout.run("--cores", "all")

    assert len(checkout.results()) == 12
    assert "is as it was" in output
    assert record_of(shop) is None
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
    ours = [call for call in writes if call.agent.startswith("loadstone")]
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
