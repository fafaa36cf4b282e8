"""Names, order and colours of variants."""

from pathlib import Path

import pytest
from loadstone import config
from loadstone.errors import LoadstoneError
from loadstone.variants import PALETTE, Variants

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


def test_an_alias_of_two_variants_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text("app: {a: {aliases: [x]}, b: {aliases: [x]}}")
    with pytest.raises(LoadstoneError, match="'x' stands for 'a' and 'b'"):
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
