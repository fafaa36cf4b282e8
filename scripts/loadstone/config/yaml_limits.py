"""A few lines of YAML can stand for more values than memory holds, or be nested deeper than a program can follow."""

from typing import Any

import yaml

_MOST_REPEATED = 100_000  # values; those that are written out are bounded by the file
_DEEPEST = 100
_LONG = 100  # characters of a text that count as one more value


def refuse(written: str, loader: Any) -> None:
    """Raises ValueError for YAML whose aliases stand for too much, or that is nested too deeply. Builds nothing."""
    count = _Count()
    for event in yaml.parse(written, loader):
        if isinstance(event, yaml.AliasEvent):
            count.repeat(str(event.anchor))
        elif isinstance(event, yaml.ScalarEvent):
            count.begin(event.anchor)
            count.values += len(event.value) // _LONG
            count.end()
        elif isinstance(event, yaml.CollectionStartEvent):
            count.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            count.end()


class _Count:
    """How many values there are so far, those that aliases stand for included."""

    def __init__(self) -> None:
        self.values = 0
        self._repeated = 0
        self._sizes: dict[str, int] = {}  # values of what an anchor names
        self._open: list[tuple[str | None, int]] = []  # what has not ended: its anchor, and how many values came before

    def begin(self, anchor: str | None) -> None:
        self._open.append((anchor, self.values))
        self.values += 1
        if len(self._open) > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} times")

    def end(self) -> None:
        anchor, before = self._open.pop()
        if anchor is not None:
            self._sizes[anchor] = self.values - before

    def repeat(self, anchor: str) -> None:
        if any(anchor == each for each, _ in self._open):
            raise ValueError(f"{anchor} is part of itself")
        size = self._sizes.get(anchor, 1)
        self.values += size
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            raise ValueError(f"aliases such as {anchor} repeat more than {_MOST_REPEATED:,} values")
