"""One cell while it is read: what its rows have in common, what is found wrong, and its own Parquet files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadstone.archive import Cell, CellListing, RawFile
from loadstone.archive.metadata import Metadata
from loadstone.tables import layout, schema
from loadstone.tables.manifest import CellRecord, Problem

_ROW_GROUP = 100_000
_ROW_GROUP_BYTES = 64 << 20

# Rising numbers: as differences they take almost no room.
_ENCODINGS = {"seq": "DELTA_BINARY_PACKED", "sent_at": "DELTA_BINARY_PACKED", "latency_ns": "PLAIN"}
_DICTIONARIES = [name for name in schema.REQUESTS.names if name not in _ENCODINGS]


@dataclass
class Reading:
    """One cell that is being read into `record`. `key` holds the columns of all its rows but for the run."""

    listing: CellListing
    record: CellRecord
    key: dict[str, Any]
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def cell(self) -> Cell:
        return self.listing.cell

    def path(self, file: RawFile) -> Path:
        return self.cell.path / file.name

    def source(self, name: str) -> str:
        """A file of the cell by its path relative to the archive."""
        return layout.text((self.cell.path / name).relative_to(self.cell.campaign.root).as_posix())

    def problem(self, run: int | None, name: str, problem: str, *, fault: bool = False) -> None:
        """`name` is the file it is about, if any; `fault`: it makes the data unfit."""
        self.record.problems.append(Problem(run, self.source(name), problem, fault))

    def sha256(self, file: RawFile | None) -> str | None:
        source = self.record.sources.get(file.name) if file else None
        return source.sha256 if source else None


class CellTables:
    """The cell's own files of `schema.OF_CELLS`; see `opened`."""

    def __init__(self, tables: Path, cell: Cell, stack: ExitStack) -> None:
        self._tables, self._cell, self._stack = tables, cell, stack
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows that have all columns of the table."""
        pending = self._pending.setdefault(table, [])
        pending.append(batch)
        if sum(each.num_rows for each in pending) >= _ROW_GROUP or (
            sum(each.nbytes for each in pending) >= _ROW_GROUP_BYTES
        ):
            self._flush(table)

    def add_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The same for rows as dictionaries; a column that one lacks is null."""
        if rows:
            self.add(table, pa.RecordBatch.from_pylist(rows, schema.TABLES[table]))

    def flush(self) -> list[str]:
        """Write what is still pending; the tables that have rows."""
        for table in self._pending:
            self._flush(table)
        return [table for table in schema.OF_CELLS if table in self._writers]

    def _flush(self, table: str) -> None:
        batches, self._pending[table] = self._pending[table], []
        if not any(batch.num_rows for batch in batches):
            return
        if table not in self._writers:
            path = layout.cell_file(self._tables, table, self._cell)
            temporary = self._stack.enter_context(layout.written(self._tables, path))
            options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
            if table == "requests":
                options |= {"use_dictionary": _DICTIONARIES, "column_encoding": _ENCODINGS}
            writer = pq.ParquetWriter(temporary, schema.TABLES[table], **options)
            self._writers[table] = self._stack.enter_context(writer)
        self._writers[table].write_table(pa.Table.from_batches(batches), row_group_size=2 * _ROW_GROUP)


@contextmanager
def opened(tables: Path, reading: Reading) -> Iterator[CellTables]:
    """The cell's files, replacing what was there when the block ends well; those without rows are removed."""
    with ExitStack() as stack:
        output = CellTables(tables, reading.cell, stack)
        yield output
        written = output.flush()
    for table in schema.OF_CELLS:
        file = layout.cell_file(tables, table, reading.cell)
        if table in written:
            reading.record.tables[table] = file.stat().st_size
        else:
            file.unlink(missing_ok=True)
