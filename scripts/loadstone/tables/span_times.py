"""Where the time of one trace went: each span's place in the tree, its self time and its share of the critical path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadstone.readers.jaeger import Span


@dataclass(frozen=True)
class SpanTimes:
    """What the tree says of one span, in microseconds.

    `depth` is 0 for the trace's root and None for a span that no path of parents connects to it. `self_us` is the part
    of its duration in which none of the children that it waited for ran. `critical_us` is its part of the trace's
    critical path. `outside`: it is not within its parent's time (clock skew, or work that nobody waited for).
    """

    depth: int | None
    self_us: int
    critical_us: int
    outside: bool


def measure(spans: Sequence[Span]) -> list[SpanTimes]:
    """One result per span, in the same order. Missing parents, cycles and repeated IDs are detached, never an error.

    The root is the span without a parent; of several, or when all have one outside the trace, the one that started
    first, then the longest. A parent's ID that occurs twice means its first span.
    """
    tree = _Tree(spans)
    critical_us = tree.critical_path()
    return [
        SpanTimes(tree.depth[index], tree.self_us(index), critical_us[index], tree.is_outside(index))
        for index in range(len(spans))
    ]


class _Tree:
    """Spans by their position in the trace."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self.start = [span.started_us for span in spans]
        self.end = [span.started_us + span.duration_us for span in spans]
        by_id: dict[str, int] = {}
        for index, span in enumerate(spans):
            by_id.setdefault(span.span_id, index)
        self.parent = [by_id.get(span.parent_id) if span.parent_id else None for span in spans]
        self.children: list[list[int]] = [[] for _ in spans]
        for index, parent in enumerate(self.parent):
            if parent is not None:
                self.children[parent].append(index)
        self.depth: list[int | None] = [None] * len(spans)
        self.root = self._root()
        self.order = list(self._from_root())

    def _root(self) -> int | None:
        tops = [index for index, parent in enumerate(self.parent) if parent is None]
        parentless = [index for index in tops if not self.spans[index].parent_id]
        return min(parentless or tops, key=lambda index: (self.start[index], -self.end[index]), default=None)

    def _from_root(self) -> Iterator[int]:
        """Every connected span, parents before children. No cycle can be among them: each has one parent."""
        waiting = [] if self.root is None else [self.root]
        for index in waiting:
            parent = self.parent[index]
            self.depth[index] = 0 if parent is None else (self.depth[parent] or 0) + 1
            waiting.extend(self.children[index])
            yield index

    def is_outside(self, index: int) -> bool:
        parent = self.parent[index]
        return parent is not None and not (
            self.start[parent] <= self.start[index] and self.end[index] <= self.end[parent]
        )

    def self_us(self, index: int) -> int:
        """Its duration less the union of its children's times within it; children that follow are not waited for."""
        left, covered = self.start[index], 0
        awaited = [child for child in self.children[index] if child != index and not self.spans[child].follows]
        for child in sorted(awaited, key=lambda child: self.start[child]):
            begin, end = max(self.start[child], left), min(self.end[child], self.end[index])
            if end > begin:
                covered += end - begin
                left = end
        return self.end[index] - self.start[index] - covered

    def critical_path(self) -> list[int]:
        """Microseconds of each span on the critical path, as Jaeger's interface defines it.

        From the root's end backwards: a span is on it until its last finishing child ended, then that child is; at a
        child's start its parent goes on with the child that ended last before. Children are cut to their parent's
        time; those wholly outside it, or that follow it, and all below them are on no critical path
        (jaeger-ui, TracePage/CriticalPath, after Zhang et al., "CRISP", USENIX ATC 2022).
        """
        found = [0] * len(self.spans)
        if self.root is None:
            return found
        start, end, children = self._cut()
        current, until = self.root, end[self.root]
        returning = False
        while True:
            last = _last_finishing(children[current], end, until if returning else None)
            if last is not None:
                found[current] += until - end[last]
                current, until, returning = last, end[last], False
                continue
            found[current] += until - start[current]
            parent = self.parent[current]
            if current == self.root or parent is None:
                return found
            current, until, returning = parent, start[current], True

    def _cut(self) -> tuple[list[int], list[int], list[list[int]]]:
        """Starts, ends, and children by rising end, of what can be on the critical path."""
        start, end = list(self.start), list(self.end)
        children: list[list[int]] = [[] for _ in self.spans]
        kept = {self.root}
        for index in self.order[1:]:
            parent = self.parent[index]
            if parent is None or parent not in kept or self.spans[index].follows:
                continue
            is_within = start[parent] <= start[index] and end[index] <= end[parent]
            if is_within or (start[index] < end[parent] and end[index] > start[parent]):
                start[index], end[index] = max(start[index], start[parent]), min(end[index], end[parent])
                kept.add(index)
                children[parent].append(index)
        for siblings in children:
            siblings.sort(key=lambda index: end[index])
        return start, end, children


def _last_finishing(siblings: list[int], end: list[int], before: int | None) -> int | None:
    """Take out the child that ended last, strictly before a moment if given; later ones are not asked for again."""
    while siblings:
        last = siblings.pop()
        if before is None or end[last] < before:
            return last
    return None
