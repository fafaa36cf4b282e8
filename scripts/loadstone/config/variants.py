"""Variants as declared in config/variants.yaml: canonical name, label, order and colour of a folder name.

Variants that are built upon each other (`over`) form layers: `VariantGraph`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Any

from loadstone.archive import parse_timestamp

# Okabe & Ito 2008, safe for colour-blind readers, without yellow (too faint on white); black last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")


@dataclass(frozen=True)
class Style:
    """How one variant is shown; variants of the same colour differ in `pattern`, the shape of points and dashes."""

    name: str
    label: str
    colour: str
    pattern: int = 0


def look(position: int, colours: Sequence[str] = PALETTE) -> tuple[str, int]:
    """Colour and pattern of the variant at a position: the colours in their order, then again in the next pattern."""
    return colours[position % len(colours)], position // len(colours)


@dataclass(frozen=True)
class Relabelled:
    """A variant that had another label at some time; `now_means` is the variant that has this label today."""

    name: str
    label: str
    former: str
    now_means: str | None


class Variants:
    """The declared variants of all apps; `declared` is the decoded config/variants.yaml: app -> variant -> fields.

    `seen` are the undeclared variants of an archive (`loadstone.workflow.declarations`): app -> variants.
    """

    def __init__(
        self,
        declared: Mapping[str, Mapping[str, Mapping[str, Any] | None]],
        seen: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.declared = {
            app: {name: fields or {} for name, fields in variants.items()} for app, variants in declared.items()
        }
        self.seen = seen or {}
        self._canonical = {
            (app, folder): name
            for app, variants in self.declared.items()
            for name, fields in variants.items()
            for folder in (name, *fields.get("aliases", ()))
        }

    def names(self) -> dict[str, dict[str, dict[str, list[str]]]]:
        """The declaration without labels and colours: all that tables depend on."""
        return {
            app: {name: {"aliases": list(fields.get("aliases", ()))} for name, fields in variants.items()}
            for app, variants in self.declared.items()
        }

    def over(self, app: str) -> dict[str, tuple[str, ...]]:
        """What each declared variant of an app is built upon, in declared order; empty for the lowest."""
        declared = {name: fields.get("over", ()) for name, fields in self.declared.get(app, {}).items()}
        return {name: (over,) if isinstance(over, str) else tuple(over) for name, over in declared.items()}

    def canonical(self, app: str, folder: str) -> str:
        """The canonical name of a variant's folder; of an undeclared one its own name."""
        return self._canonical.get((app, folder), folder)

    def folders(self, app: str) -> list[str] | None:
        """All declared folder names of an app, sorted; None for an app that is not declared at all."""
        return sorted(folder for of, folder in self._canonical if of == app) if app in self.declared else None

    def label_at(self, app: str, name: str, instant: datetime) -> str:
        """The label that a variant had at an instant."""
        fields = self.declared.get(app, {}).get(name, {})
        for former in fields.get("history", ()):
            until = parse_timestamp(former["until"])
            if until is not None and instant < until:
                return str(former["label"])
        return str(fields.get("label", name))

    def relabelled(self, app: str, present: Iterable[str], instant: datetime) -> list[Relabelled]:
        """The variants that had another label at an instant, in declared order."""
        today = {str(fields.get("label", name)): name for name, fields in self.declared.get(app, {}).items()}
        found = []
        for style in self.styles(app, present):
            former = self.label_at(app, style.name, instant)
            if former != style.label:
                found.append(Relabelled(style.name, style.label, former, today.get(former)))
        return found

    def styles(self, app: str, present: Iterable[str], planned: Iterable[str] = ()) -> list[Style]:
        """Styles of the variants that are present: in declared order, then in the order `planned`, then by name.

        Variants that are declared, or seen before, have the same style on every page, whichever others are present.
        """
        declared = self.declared.get(app, {})
        names = set(present)
        known = [*declared, *(self.canonical(app, folder) for folder in planned)]
        rest = sorted(names.difference(known), key=natural)
        ordered = [*(name for name in dict.fromkeys(known) if name in names), *rest]
        given = {name: fields["colour"] for name, fields in declared.items() if fields.get("colour")}
        free = [colour for colour in PALETTE if colour not in given.values()] or list(PALETTE)
        plain = [name for name in dict.fromkeys([*declared, *self.seen.get(app, ()), *ordered]) if name not in given]
        looks = {name: look(position, free) for position, name in enumerate(plain)}
        looks |= {name: (colour, 0) for name, colour in given.items()}
        return [Style(name, declared.get(name, {}).get("label", name), *looks[name]) for name in ordered]


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key for the natural order of names: ``v9`` before ``v10``."""
    parts = re.split("([0-9]+)", name)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)], name


@dataclass(frozen=True)
class Layer:
    """`variant` is built upon `below`, with no measured variant between them."""

    below: str
    variant: str


@dataclass(frozen=True)
class Diamond:
    """`top` is built upon `left` and `right`, and both upon `bottom`."""

    bottom: str
    left: str
    right: str
    top: str


class VariantGraph:
    """Variants and what they are declared to be `over`; layers skip those that were not measured."""

    def __init__(self, over: Mapping[str, Sequence[str]], measured: Collection[str]) -> None:
        self._over = over
        self._measured = [variant for variant in over if variant in measured]

    def layers(self) -> list[Layer]:
        """Every layer between measured variants, in declared order."""
        return [Layer(below, variant) for variant in self._measured for below in self._below(variant)]

    def diamonds(self) -> list[Diamond]:
        """Every pair of layers that leads from one measured variant to another, in declared order."""
        found = []
        for top in self._measured:
            for left, right in combinations(self._below(top), 2):
                common = [each for each in self._reached(left) if each in self._reached(right)]
                found += [Diamond(bottom, left, right, top) for bottom in self._nearest(common)]
        return found

    def _below(self, variant: str) -> list[str]:
        """The measured variants directly below this one."""
        return self._nearest(self._reached(variant))

    def _reached(self, variant: str) -> list[str]:
        """All measured variants below this one, at any distance, nearest first."""
        found: dict[str, None] = {}
        waiting = list(self._over.get(variant, ()))
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += self._over.get(name, ())
        return [name for name in found if name in self._measured]

    def _nearest(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that are not below another of them."""
        covered = {below for name in names for below in self._reached(name)}
        return [name for name in names if name not in covered]


def cycle(over: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Variants that are over each other in a cycle, the first again at the end; None if there are none."""
    try:
        TopologicalSorter(over).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]  # graphlib lists each before those that are over it
    return None


# --- colours on a light and on a dark page: the same hue, light enough to be visible ----------------------------------

_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_FALLBACK = "#767676"
_DARK_PAPER = "#14171a"
_CONTRAST = 4.0  # WCAG 2.2 asks 3:1 of graphics; a thin line needs somewhat more


def on_light(colour: str) -> str:
    """The colour itself; a grey if it is not ``#rrggbb``."""
    return colour if _HEX.fullmatch(colour) else _FALLBACK


def on_dark(colour: str) -> str:
    """The colour, mixed with white until it stands out from a dark page (black becomes a light grey)."""
    red, green, blue = _channels(on_light(colour))
    for step in range(21):
        mixed = [round(channel + (255 - channel) * step / 20) for channel in (red, green, blue)]
        candidate = "#{:02x}{:02x}{:02x}".format(*mixed)
        if contrast(candidate, _DARK_PAPER) >= _CONTRAST:
            return candidate
    return "#ffffff"


def light_dark(colour: str) -> str:
    """Both as one CSS value: ``light-dark(...)``."""
    return f"light-dark({on_light(colour)},{on_dark(colour)})"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio" and "relative luminance")."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
