"""One trace dump -> its rows of `spans`, `trace_shares` and `problems`.

`measure` says where the time of one trace went: each span's place in the tree, its self time, and its share of the
critical path.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive.trace_dumps import Dump
from loadstone.config import redact
from loadstone.readers import jaeger
from loadstone.readers.jaeger import DumpProblems, Span, Trace
from loadstone.tables import OF_DUMPS, layout, schema

_ROW_GROUP = 10_000
_MEMORY = "200MB"


def convert_dump(dump: Dump, tables: Path, log: Callable[[str], None]) -> None:
    """Read one dump and write what it holds, replacing what was there, one trace at a time.

    What can't be read, and anomalies of the traces, become rows of `problems`. Raises LoadstoneError when
    `tables` can't be written.
    """
    reading = _Reading(dump)
    spans = layout.dump_file(tables, "spans", dump)
    with layout.written(tables, spans) as temporary, pq.ParquetWriter(temporary, schema.TABLES["spans"]) as out:
        for rows in reading.groups():
            out.write_table(pa.Table.from_pylist(rows, schema.TABLES["spans"]))
    _write_shares(dump, tables, spans)
    key = _key(dump) | {"source": layout.text(dump.source)}
    problems = [key | {"problem": problem} for problem in reading.problems()]
    layout.write_rows(tables, layout.dump_file(tables, "problems", dump), problems, "problems")
    log(f"{layout.text(dump.source)}: {reading.n_traces} traces, {reading.n_spans} spans")
    for problem in problems:
        log(f"{problem['source']} {problem['problem']}")


def prune_dumps(tables: Path, dumps: list[Dump]) -> None:
    """Remove the rows of dumps that are no longer in the archive, or belong to another campaign now."""
    for table in OF_DUMPS:
        expected = {layout.dump_file(tables, table, dump) for dump in dumps}
        for pattern in (layout.PARTITIONS, layout.FORMER_PARTITIONS):
            for path in set((tables / table).glob(f"{pattern}/traces-*~*.parquet")) - expected:
                path.unlink()


def _key(dump: Dump) -> dict[str, Any]:
    named = {"app": dump.app, "host": dump.host, "timestamp": dump.timestamp}
    return {name: layout.text(value) or None for name, value in named.items()}


def _write_shares(dump: Dump, tables: Path, spans: Path) -> None:
    # A job has one core. What is beyond the memory goes to the disk.
    limits: dict[str, Any] = {"threads": 1, "memory_limit": _MEMORY, "temp_directory": str(tables / ".spilled")}
    with duckdb.connect(config=limits) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        shares = connection.sql(sql.load("trace_shares"), params={"files": [layout.pattern(spans)]}).to_arrow_table()
    for name, value in (_key(dump) | {"dump": layout.text(dump.source)}).items():
        shares = shares.append_column(name, pa.repeat(pa.scalar(value, pa.string()), len(shares)))
    columns = schema.TABLES["trace_shares"]
    with layout.written(tables, layout.dump_file(tables, "trace_shares", dump)) as temporary:
        pq.write_table(shares.select(columns.names).cast(columns), temporary, compression="zstd")


class _Reading:
    """One dump while it is read, with counts of its anomalies."""

    def __init__(self, dump: Dump) -> None:
        self.dump = dump
        self.n_traces = self.n_spans = 0
        self._problems = DumpProblems()
        self._repeated = self._detached = self._outside = self._empty = 0
        self._seen: set[str] = set()

    def groups(self) -> Iterator[list[dict[str, Any]]]:
        """Rows of `spans`, at least `_ROW_GROUP` at a time but for the last."""
        rows: list[dict[str, Any]] = []
        for trace in jaeger.read(self.dump.path, self._problems):
            if trace.trace_id in self._seen:
                self._repeated += 1
                continue
            self._seen.add(trace.trace_id)
            rows.extend(self._rows(trace))
            if len(rows) >= _ROW_GROUP:
                yield rows
                rows = []
        if rows:
            yield rows

    def _rows(self, trace: Trace) -> Iterator[dict[str, Any]]:
        self.n_traces += 1
        self.n_spans += len(trace.spans)
        self._empty += not trace.spans
        constant = _key(self.dump) | {"trace_id": trace.trace_id, "dump": layout.text(self.dump.source)}
        for span, times in zip(trace.spans, measure(trace.spans), strict=True):
            self._detached += times.depth is None
            self._outside += times.outside
            yield constant | {
                "span_id": span.span_id,
                "parent_id": span.parent_id or None,
                "follows": span.follows,
                "service": span.service,
                "operation": redact.text(span.operation),
                "started_at": span.started_us,
                "duration_ns": span.duration_us * 1000,
                "failed": span.failed,
                "depth": times.depth,
                "self_ns": times.self_us * 1000,
                "critical_ns": times.critical_us * 1000,
            }

    def problems(self) -> list[str]:
        """Phrases to follow the dump's name."""
        counts = {
            "traces appear twice; the first of each is used": self._repeated,
            "traces without a span": self._empty,
            "spans that no parent connects to their trace's root; no share includes them": self._detached,
            "spans outside their parent's time (clocks that differ, or work not waited for)": self._outside,
        }
        return [*self._problems.texts(), *(f"holds {count} {what}" for what, count in counts.items() if count)]


# --- the times of one trace -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpanTimes:
    """What the tree says of one span, in microseconds.

    `depth` is 0 for the trace's root and None for a span that no path of parents connects to it. `self_us` is the part
    of its duration in which none of the children that it waited for ran. `critical_us` is its part of the trace's
    critical path. `outside`: it is not within its parent's time (clock skew, or work that was not awaited).
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
