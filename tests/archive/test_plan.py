"""The order of a sweep's variants, from real plans."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from loadstone.archive import Campaign, plan
from loadstone.collect import sweep
from loadstone.config.variants import Variants

NAMES = ["zebra", "plain", "Envoy", "a b", "%"]


def opened(folder: Path, **changes: Any) -> Campaign:
    """A plan of a real sweep."""
    expect = {"status": 200, "body_contains": "x"}
    variants = {name: {"url": "http://127.0.0.1:9/", "expect": expect} for name in NAMES}
    planned = {"app": "demo", "variants": NAMES, "rates": [1000, 20, 300], "runs": 3, "duration": "1s"} | changes
    target = {"kind": "local", "variants": variants}
    config = {"archive": str(folder), "host": "here", "sweep": planned, "target": target}
    return sweep.open_sweep(config, {}, lambda _: None)


@pytest.mark.parametrize("seed", [None, 0, 1, 2**32 - 1])
@pytest.mark.parametrize("kind", ["blocks", "fixed"])
def test_it_is_as_declared(tmp_path: Path, kind: str, seed: int | None) -> None:
    assert plan.declared_variants(opened(tmp_path, order=kind, seed=seed)) == NAMES


def test_one_cell_and_one_rate(tmp_path: Path) -> None:
    assert plan.declared_variants(opened(tmp_path / "one", variants=["plain"], rates=[5])) == ["plain"]
    assert plan.declared_variants(opened(tmp_path / "two", variants=["plain", "Envoy"], rates=[5])) == [
        "plain",
        "Envoy",
    ]


def test_a_plan_that_is_not_whole_any_more_tells_nothing(tmp_path: Path) -> None:
    campaign = opened(tmp_path, seed=7)
    path = campaign.path / "20/zebra/metadata.json"
    content = json.loads(path.read_text())

    def changed(**keys: Any) -> list[str]:
        path.write_text(json.dumps(content | keys))
        return plan.declared_variants(campaign)

    assert changed() == NAMES
    assert changed(seed=8) == []
    assert changed(order={"kind": "blocks", "positions": []}) == []
    assert changed(order={"kind": "blocks", "positions": [999]}) == []
    assert changed(order={"kind": "odd", "positions": [1]}) == []
    other = json.loads((campaign.path / "20/plain/metadata.json").read_text())["order"]
    assert changed(order=other) == []
    path.write_text("{")
    assert plan.declared_variants(campaign) == []
    shutil.rmtree(path.parent)
    assert plan.declared_variants(campaign) == []
    assert plan.variants_of_cells([]) == []


def test_styles_take_it_behind_what_is_declared_for_all_campaigns() -> None:
    variants = Variants({"demo": {"plain": {}, "istio": {"aliases": ["envoy"]}}})
    present = ["a", "b", "c", "istio", "plain"]
    styles = variants.styles("demo", present, ["c", "envoy", "gone", "a"])
    assert [style.name for style in styles] == ["plain", "istio", "c", "a", "b"]
    assert len({style.colour for style in styles}) == 5
