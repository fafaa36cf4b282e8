"""One trace dump -> its rows of `spans`, `trace_shares` and `problems`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive.trace_dumps import Dump
from loadstone.readers import jaeger
from loadstone.readers.jaeger import DumpProblems, Trace
from loadstone.tables import layout, schema
from loadstone.tables.span_times import measure

_ROW_GROUP = 10_000
_MEMORY = "200MB"


def convert_dump(dump: Dump, tables: Path, log: Callable[[str], None]) -> None:
    """Read one dump and write what it holds, replacing what was there, one trace at a time.

    What can't be read, and what is odd about the traces, becomes rows of `problems`. Raises LoadstoneError when
    `tables` can't be written.
    """
    reading = _Reading(dump)
    spans = layout.dump_file(tables, "spans", dump)
    with layout.written(tables, spans) as temporary, pq.ParquetWriter(temporary, schema.SPANS) as out:
        for rows in reading.groups():
            out.write_table(pa.Table.from_pylist(rows, schema.SPANS))
    _write_shares(dump, tables, spans)
    key = _key(dump) | {"source": layout.text(dump.source)}
    problems = [key | {"problem": problem} for problem in reading.problems()]
    layout.write_rows(tables, layout.dump_file(tables, "problems", dump), problems, schema.PROBLEMS)
    log(f"{layout.text(dump.source)}: {reading.n_traces} traces, {reading.n_spans} spans")
    for problem in problems:
        log(f"{problem['source']} {problem['problem']}")


def prune_dumps(tables: Path, dumps: list[Dump]) -> None:
    """Remove the rows of dumps that are no longer in the archive, or belong to another campaign now."""
    for table in schema.OF_DUMPS:
        expected = {layout.dump_file(tables, table, dump) for dump in dumps}
        for path in (tables / table).glob("app=*/host=*/timestamp=*/traces-*~*.parquet"):
            if path not in expected:
                path.unlink()


def _key(dump: Dump) -> dict[str, Any]:
    named = {"app": dump.app, "host": dump.host, "timestamp": dump.timestamp}
    return {name: layout.text(value) or None for name, value in named.items()}


def _write_shares(dump: Dump, tables: Path, spans: Path) -> None:
    # What is beyond the memory goes to the disk.
    limits: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": str(tables / ".spilled")}
    with duckdb.connect(config=limits) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        shares = connection.sql(sql.load("trace_shares"), params={"files": [layout.pattern(spans)]}).to_arrow_table()
    constant = _key(dump) | {"dump": layout.text(dump.source)}
    columns = [
        shares[column.name].cast(column.type)
        if column.name in shares.column_names
        else pa.repeat(pa.scalar(constant.get(column.name), column.type), len(shares))
        for column in schema.TRACE_SHARES
    ]
    with layout.written(tables, layout.dump_file(tables, "trace_shares", dump)) as temporary:
        pq.write_table(pa.table(columns, schema=schema.TRACE_SHARES), temporary, compression="zstd")


class _Reading:
    """One dump while it is read, with what is counted on the way."""

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
                "operation": span.operation,
                "started_at": span.started_us,
                "duration_ns": span.duration_us * 1000,
                "failed": span.failed,
                "depth": times.depth,
                "self_ns": times.self_us * 1000,
                "critical_ns": times.critical_us * 1000,
            }

    def problems(self) -> list[str]:
        """Sentence parts to stand behind the dump's name."""
        counts = {
            "traces twice; the first of each counts": self._repeated,
            "traces without a span": self._empty,
            "spans that no parent connects to their trace's root; they are in no share": self._detached,
            "spans outside their parent's time (clocks that differ, or work not waited for)": self._outside,
        }
        return [*self._problems.texts(), *(f"holds {count} {what}" for what, count in counts.items() if count)]
