"""Variants that are built upon each other (`over` in config/variants.yaml), and the layers between them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations


@dataclass(frozen=True)
class Layer:
    """`variant` is built upon `below`, with none between them that was measured."""

    below: str
    variant: str


@dataclass(frozen=True)
class Diamond:
    """`top` is built upon `left` and `right`, and both upon `bottom`."""

    bottom: str
    left: str
    right: str
    top: str


class Lattice:
    """Variants by what they are declared to be `over`; those that were not measured are passed through."""

    def __init__(self, over: Mapping[str, Sequence[str]], measured: Collection[str]) -> None:
        self._over, self._measured = over, set(measured)

    def layers(self) -> list[Layer]:
        """Every layer between measured variants, in declared order."""
        return [
            Layer(below, variant)
            for variant in self._over
            if variant in self._measured
            for below in self._below(variant)
        ]

    def diamonds(self) -> list[Diamond]:
        """Every pair of layers that leads from one measured variant to another, in declared order."""
        found = []
        for top in self._over:
            if top not in self._measured:
                continue
            for left, right in combinations(self._below(top), 2):
                common = [each for each in self._reached(left) if each in self._reached(right)]
                found += [Diamond(bottom, left, right, top) for bottom in self._nearest(common)]
        return found

    def _below(self, variant: str) -> list[str]:
        """The measured variants that this one is directly upon."""
        return self._nearest(self._reached(variant))

    def _reached(self, variant: str) -> list[str]:
        """All measured variants that this one is upon, however far down."""
        found: dict[str, None] = {}
        waiting = list(self._over.get(variant, ()))
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += self._over.get(name, ())
        return [name for name in found if name in self._measured]

    def _nearest(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that no other of them is upon."""
        covered = {below for name in names for below in self._reached(name)}
        return [name for name in names if name not in covered]


def cycle(over: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Variants that are over each other in a circle, the first again at the end; None if there are none."""
    try:
        TopologicalSorter(over).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]  # each is given before what is over it
    return None
