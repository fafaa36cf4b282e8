"""Names, order and colours of variants."""

from collections.abc import Callable
from datetime import datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT
from loadstone import config
from loadstone.config.variants import PALETTE, Diamond, Layer, VariantGraph, Variants, cycle, on_dark, on_light
from loadstone.errors import LoadstoneError

DECLARED = {"app": {"b": {"label": "B", "colour": "#0072B2", "aliases": ["old b"]}, "a": None}}


def test_folders_have_canonical_names_and_unknown_ones_keep_theirs() -> None:
    variants = Variants(DECLARED)
    assert [variants.canonical("app", folder) for folder in ("b", "old b", "a", "new")] == ["b", "b", "a", "new"]
    assert variants.canonical("other", "old b") == "old b"
    assert Variants(variants.names()).canonical("app", "old b") == "b"


def test_declared_order_then_the_others_and_no_colour_twice() -> None:
    styles = Variants(DECLARED).styles("app", ["z", "a", "b", "y"])
    assert [style.name for style in styles] == ["b", "a", "y", "z"]
    assert [style.label for style in styles] == ["B", "a", "y", "z"]
    assert len({style.colour for style in styles}) == 4
    assert {style.colour for style in styles} <= set(PALETTE)


def test_undeclared_variants_are_in_the_order_in_which_people_count() -> None:
    names = ["1600", "pods-10", "100", "pods-9", "400", "pods-9-b"]
    ordered = [style.name for style in Variants({}).styles("app", names)]
    assert ordered == ["100", "400", "1600", "pods-9", "pods-9-b", "pods-10"]
    # Also what counts from nowhere, and numbers that are written in two ways.
    assert [style.name for style in Variants({}).styles("app", ["07", "7", "", "x", "٣"])] == ["", "07", "7", "x", "٣"]


def test_no_two_of_many_variants_look_the_same() -> None:
    styles = Variants(DECLARED).styles("app", ["a", "b", *map(str, range(22))])
    assert {style.colour for style in styles} == set(PALETTE)
    assert len({(style.colour, style.pattern) for style in styles}) == 24
    assert [style.pattern for style in styles[:7]] == [0] * 7 and styles[7].pattern == 1


def test_a_declared_variant_looks_the_same_whichever_others_are_there() -> None:
    declared = Variants({"app": dict.fromkeys("abcdefghi") | {"z": {"colour": PALETTE[0]}}})
    together = {style.name: style for style in declared.styles("app", [*"abcdefghiz", "new"])}
    for name in "abcdefghiz":
        assert declared.styles("app", [name, "other"])[0] == together[name]


def test_what_was_seen_before_looks_the_same_whichever_others_are_there() -> None:
    variants = Variants(DECLARED, {"app": ["v9", "v1", "v10"]})
    together = {style.name: style for style in variants.styles("app", ["v1", "v9", "v10", "w"])}
    assert [*together] == ["v1", "v9", "v10", "w"]
    assert len({style.colour for style in together.values()}) == 4
    for name in ("v1", "v9", "v10"):
        assert variants.styles("app", [name, "other"], ["other", name])[1] == together[name]


def test_an_alias_of_two_variants_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text("app: {a: {aliases: [x]}, b: {aliases: [x]}}")
    with pytest.raises(LoadstoneError, match="'x' is claimed by both 'a' and 'b'"):
        config.load_variants(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("app: {a: {color: red}}", "color"),
        ("app: {a: {colour: red}}", "colour"),
        ("a: [", "not valid YAML"),
        ("- a", "top level"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text(text)
    with pytest.raises(LoadstoneError, match=said):
        config.load_variants(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("app: {a: , b: {over: c}}", "app: b: over: 'c' is not a canonical name of a variant of this app"),
        ("app: {a: {aliases: [x]}, b: {over: [a, x]}}", "'x' is not a canonical name"),
        ("other: {x: }\napp: {b: {over: x}}", "'x' is not a canonical name"),
        ("app: {a: {over: a}}", "`over` is circular for these variants: a over a$"),
        (
            "app: {z: {over: a}, a: {over: b}, b: {over: [c, d]}, c: , d: {over: a}}",
            "(a over b over d over a|b over d over a over b|d over a over b over d)$",
        ),
        ("app: {a: {over: []}}", "over"),
        ("app: {a: , b: {over: [a, a]}}", "over"),
        ("app: {a: {over: 1}}", "over"),
    ],
)
def test_wrong_layers_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text(text)
    with pytest.raises(LoadstoneError, match=said):
        config.load_variants(file)


def test_a_variant_is_over_one_or_several(tmp_path: Path) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text("app: {b: {over: a}, a: , c: {over: [a, b]}}")
    assert config.load_variants(file).over("app") == {"b": ("a",), "a": (), "c": ("a", "b")}
    assert config.load_variants(file).over("unknown") == {}


def test_the_shipped_layers_lead_down_to_plain() -> None:
    variants = config.load_variants(PROJECT / "config/variants.yaml")
    assert variants.over("demo") == {
        "plain": (),
        "envoy": ("plain",),
        "passthrough-filter": ("envoy",),
        "body-filter": ("passthrough-filter",),
    }
    over = variants.over("bookinfo")
    for name in over:
        lowest = name
        while over[lowest]:
            (lowest,) = over[lowest]
        assert lowest == "plain"


# --- the declared variants of bookinfo -------------------------------------------------------------------------------

# Folder -> canonical name, over the years.
FOLDERS = {
    "plain": "plain",
    "envoy": "istio",
    "istio": "istio",
    "filter-passthrough": "passthrough-filter",
    "passthrough-filter": "passthrough-filter",
    "filter-traces-opa-singleton": "tooling-filter",
    "tooling-filter": "tooling-filter",
    "filter": "prose-filter",
    "filter-97776ef1": "prose-filter-97776ef1",
    "prose-filter": "prose-filter",
    "prose-filter-8ec667ab": "prose-filter-8ec667ab",
    "prose-no-presidio-filter": "prose-no-presidio-filter",
    "prose-no-presidio-filter-939db60b": "prose-no-presidio-filter-939db60b",
    "prose-cached-presidio-filter": "prose-cached-presidio-filter",
    "filter-passthrough-buffer": "filter-passthrough-buffer",
    "filter-traces": "filter-traces",
    "filter-traces-opa": "filter-traces-opa",
}
ORDER = [
    "plain",
    "istio",
    "passthrough-filter",
    "tooling-filter",
    "prose-no-presidio-filter",
    "prose-cached-presidio-filter",
    "prose-filter",
    "prose-filter-97776ef1",
    "prose-filter-8ec667ab",
    "prose-no-presidio-filter-939db60b",
    "filter-passthrough-buffer",
    "filter-traces",
    "filter-traces-opa",
]


@pytest.fixture(scope="module")
def real() -> Variants:
    return config.load_variants(PROJECT / "config/variants.yaml")


def test_folder_names_of_all_years(real: Variants) -> None:
    assert {folder: real.canonical("bookinfo", folder) for folder in FOLDERS} == FOLDERS
    assert real.canonical("demo", "envoy") == "envoy", "the same folder name is another variant of another app"
    assert [style.name for style in real.styles("bookinfo", reversed(ORDER))] == ORDER


def test_known_folders_of_an_app(real: Variants) -> None:
    assert real.folders("bookinfo") == sorted({*FOLDERS, *ORDER})
    assert real.folders("another") is None


def test_what_a_label_meant_when(real: Variants) -> None:
    """The same words stood for three variants, one after another."""
    words = "K8s + Istio + Prose"
    meant = {
        day: [
            name for name in ORDER if real.label_at("bookinfo", name, datetime.fromisoformat(f"{day}T12:00Z")) == words
        ]
        for day in ("2024-04-01", "2024-05-01", "2025-05-01", "2025-06-01")
    }
    assert meant["2024-05-01"] == ["prose-filter"]
    assert "prose-filter-97776ef1" in meant["2024-04-01"]
    assert meant["2025-05-01"] == []
    assert meant["2025-06-01"] == ["prose-cached-presidio-filter"]


def test_relabelled_variants_name_whom_their_old_label_stands_for_today(real: Variants) -> None:
    found = real.relabelled(
        "bookinfo", ["plain", "filter", "prose-filter"], datetime.fromisoformat("2024-05-01T12:00Z")
    )
    assert [(each.name, each.former, each.now_means) for each in found] == [
        ("prose-filter", "K8s + Istio + Prose", "prose-cached-presidio-filter")
    ]


@pytest.mark.parametrize(
    ("untils", "said"),
    [
        (["2024-01-01T00:00:00"], "until"),
        (["2024-13-01T00:00:00Z"], "not an ISO 8601 time"),
        (["2025-01-01T00:00:00Z", "2024-01-01T00:00:00Z"], "from the oldest to the newest"),
    ],
)
def test_a_wrong_history_is_named(tmp_path: Path, untils: list[str], said: str) -> None:
    file = tmp_path / "variants.yaml"
    history = ", ".join(f'{{until: "{until}", label: x}}' for until in untils)
    file.write_text(f"app: {{a: {{history: [{history}]}}}}")
    with pytest.raises(LoadstoneError, match=said):
        config.load_variants(file)


# --- colours as colour-blind readers see them ------------------------------------------------------------------------

# Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB: normal vision, protanopia, deuteranopia, tritanopia.
VISIONS = [
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
]
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
JUST_NOTICED = 2.3  # CIELAB, Mahy, Van Eycken & Oosterlinck 1994


def lab(colour: str, vision: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of a colour as a kind of vision sees it."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(vision @ linear, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("shown", [on_light, on_dark])
def test_no_two_colours_look_alike_to_anyone(real: Variants, shown: Callable[[str], str]) -> None:
    colours = {style.name: shown(style.colour) for style in real.styles("bookinfo", ORDER)}
    assert len(set(colours.values())) == len(ORDER)
    for one, other in combinations(ORDER, 2):
        for vision in VISIONS:
            apart = np.linalg.norm(lab(colours[one], vision) - lab(colours[other], vision))
            assert apart > 5 * JUST_NOTICED, (one, other)


CHAIN = {"plain": (), "mesh": ("plain",), "filter": ("mesh",), "full": ("filter",)}
SQUARE = {"plain": (), "mesh": ("plain",), "cache": ("plain",), "both": ("mesh", "cache")}


def test_a_chain_has_a_layer_at_each_step():
    found = VariantGraph(CHAIN, CHAIN)
    assert found.layers() == [Layer("plain", "mesh"), Layer("mesh", "filter"), Layer("filter", "full")]
    assert found.diamonds() == []


def test_what_was_not_measured_is_passed_through():
    assert VariantGraph(CHAIN, ["full", "plain"]).layers() == [Layer("plain", "full")]
    assert VariantGraph(CHAIN, ["full", "mesh", "undeclared"]).layers() == [Layer("mesh", "full")]
    assert VariantGraph(CHAIN, ["plain"]).layers() == []


def test_two_ways_down_to_one_variant_are_a_diamond():
    assert VariantGraph(SQUARE, SQUARE).diamonds() == [Diamond("plain", "mesh", "cache", "both")]
    assert VariantGraph(SQUARE, ["plain", "mesh", "both"]).diamonds() == []
    # Without one of its sides the longer way through the other is the layer.
    assert VariantGraph(SQUARE, ["plain", "mesh", "both"]).layers() == [Layer("plain", "mesh"), Layer("mesh", "both")]


def test_the_bottom_of_a_diamond_is_the_nearest_common_one():
    over = {"lowest": (), "plain": ("lowest",), **{name: SQUARE[name] for name in ("mesh", "cache", "both")}}
    over["more"] = ("mesh",)
    over["top"] = ("more", "cache")
    assert VariantGraph(over, over).diamonds() == [
        Diamond("plain", "mesh", "cache", "both"),
        Diamond("plain", "more", "cache", "top"),
    ]


def test_three_sides_make_three_diamonds():
    over = {"plain": (), "a": ("plain",), "b": ("plain",), "c": ("plain",), "all": ("a", "b", "c")}
    assert [(each.left, each.right) for each in VariantGraph(over, over).diamonds()] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]


def test_circles_are_found():
    assert cycle(SQUARE) is None
    assert cycle({"a": ("a",)}) == ["a", "a"]
    found = cycle({"z": ("a",), "a": ("b",), "b": ("c", "d"), "c": (), "d": ("a",)})
    assert found is not None and found[0] == found[-1]
    assert "".join(found) in {"abda", "bdab", "dabd"}
    deep = {str(number): (str(number + 1),) for number in range(5000)}
    assert cycle(deep | {"5000": ()}) is None
