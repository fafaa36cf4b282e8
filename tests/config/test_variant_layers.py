"""Layers between variants that were measured."""

from loadstone.config.variant_layers import Diamond, Lattice, Layer, cycle

CHAIN = {"plain": (), "mesh": ("plain",), "filter": ("mesh",), "full": ("filter",)}
SQUARE = {"plain": (), "mesh": ("plain",), "cache": ("plain",), "both": ("mesh", "cache")}


def test_a_chain_has_a_layer_at_each_step():
    found = Lattice(CHAIN, CHAIN)
    assert found.layers() == [Layer("plain", "mesh"), Layer("mesh", "filter"), Layer("filter", "full")]
    assert found.diamonds() == []


def test_what_was_not_measured_is_passed_through():
    assert Lattice(CHAIN, ["full", "plain"]).layers() == [Layer("plain", "full")]
    assert Lattice(CHAIN, ["full", "mesh", "undeclared"]).layers() == [Layer("mesh", "full")]
    assert Lattice(CHAIN, ["plain"]).layers() == []


def test_two_ways_down_to_one_variant_are_a_diamond():
    assert Lattice(SQUARE, SQUARE).diamonds() == [Diamond("plain", "mesh", "cache", "both")]
    assert Lattice(SQUARE, ["plain", "mesh", "both"]).diamonds() == []
    # Without one of its sides the longer way through the other is the layer.
    assert Lattice(SQUARE, ["plain", "mesh", "both"]).layers() == [Layer("plain", "mesh"), Layer("mesh", "both")]


def test_the_bottom_of_a_diamond_is_the_nearest_common_one():
    over = {"lowest": (), "plain": ("lowest",), **{name: SQUARE[name] for name in ("mesh", "cache", "both")}}
    over["more"] = ("mesh",)
    over["top"] = ("more", "cache")
    assert Lattice(over, over).diamonds() == [
        Diamond("plain", "mesh", "cache", "both"),
        Diamond("plain", "more", "cache", "top"),
    ]


def test_three_sides_make_three_diamonds():
    over = {"plain": (), "a": ("plain",), "b": ("plain",), "c": ("plain",), "all": ("a", "b", "c")}
    assert [(each.left, each.right) for each in Lattice(over, over).diamonds()] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_circles_are_found():
    assert cycle(SQUARE) is None
    assert cycle({"a": ("a",)}) == ["a", "a"]
    found = cycle({"z": ("a",), "a": ("b",), "b": ("c", "d"), "c": (), "d": ("a",)})
    assert found is not None and found[0] == found[-1]
    assert "".join(found) in {"abda", "bdab", "dabd"}
    deep = {str(number): (str(number + 1),) for number in range(5000)}
    assert cycle(deep | {"5000": ()}) is None
