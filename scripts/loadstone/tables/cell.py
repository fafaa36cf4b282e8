"""One cell during conversion: the record of what its tables were made from, and its own Parquet files.

Records are kept per campaign below ``<tables>/.manifest``: the raw files by size, mtime and hash, and the rows that are
no requests. So a cell is read again only when its content changed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone.archive import METADATA, Campaign, Cell, CellListing, RawFile
from loadstone.archive.durable import replace, sha256_of
from loadstone.archive.metadata import Metadata
from loadstone.config import redact
from loadstone.tables import OF_CELLS, VERSION, layout, schema
from loadstone.tables.exclusion import Exclusion

_ROW_GROUP = 100_000
_ROW_GROUP_BYTES = 64 << 20

# Rising numbers: as differences they take almost no room.
_ENCODINGS = {"seq": "DELTA_BINARY_PACKED", "sent_at": "DELTA_BINARY_PACKED", "latency_ns": "PLAIN"}
_DICTIONARIES = [name for name in schema.TABLES["requests"].names if name not in _ENCODINGS]


@dataclass
class Source:
    """One raw file as it was when it was read; `sha256` of its bytes, None where it could not be read."""

    size: int
    mtime_ns: int
    sha256: str | None


@dataclass
class Problem:
    """One thing wrong in a cell. `run` is None when it concerns all of the cell; with a `fault` the data are unfit."""

    run: int | None
    source: str
    problem: str
    fault: Exclusion | None = None


@dataclass
class CellRecord:
    """All rows of one cell but its requests, and the files they come from. Rows are dictionaries by column."""

    rate: str
    variant_dir: str
    variant: str
    extended: str = ""  # `extension.fingerprint` of the cell
    sources: dict[str, Source] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # size of the cell's own file, by table
    runs: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    incidents: list[dict[str, Any]] = field(default_factory=list)
    planned: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """The cell's folders: rate and variant."""
        return self.rate, self.variant_dir


def load_records(tables: Path, campaign: Campaign) -> dict[tuple[str, str], CellRecord]:
    """Records by rate and variant folder; empty when there are none of this version and `redact`."""
    try:
        content = json.loads(layout.manifest_file(tables, campaign).read_bytes())
        if [content["version"], content.get("redact")] != [VERSION, redact.names().fields()]:
            return {}
        return {record.key: record for record in msgspec.convert(content["cells"], list[CellRecord])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save_records(tables: Path, campaign: Campaign, records: Mapping[tuple[str, str], CellRecord]) -> None:
    """Replace a campaign's manifest in one step."""
    path = layout.manifest_file(tables, campaign)
    layout.prepare_folder(tables, path.parent)
    content = {"version": VERSION, "redact": redact.names().fields(), "cells": list(records.values())}
    replace(path, json.dumps(content, default=vars).encode())


def present(listing: CellListing) -> dict[str, tuple[int, int]]:
    """Size and mtime of each file of a cell, by name."""
    found = {file.name: (file.size, file.mtime_ns) for file in listing.files}
    return found if listing.metadata is None else found | {METADATA: listing.metadata}


def change(record: CellRecord, listing: CellListing) -> str:
    """Why a cell has to be read again; empty when its content has not changed.

    A file of which only the mtime changed, or that could not be read, is hashed; when its content is the same, `record`
    gets the new mtime.
    """
    now = present(listing)
    if new := sorted(now.keys() - record.sources.keys()):
        return f"new: {_some(new)}"
    if gone := sorted(record.sources.keys() - now.keys()):
        return f"gone: {_some(gone)}"
    changed = [name for name, (size, _) in now.items() if size != record.sources[name].size]
    for name, (_, mtime_ns) in now.items():
        source = record.sources[name]
        if name not in changed and (mtime_ns != source.mtime_ns or source.sha256 is None):
            if sha256_or_none(listing.cell.path / name) != source.sha256:
                changed.append(name)
            else:
                source.mtime_ns = mtime_ns
    return f"changed: {_some(changed)}" if changed else ""


def sha256_or_none(path: Path) -> str | None:
    """The hash of a regular file's bytes; None when it can't be read."""
    try:
        return sha256_of(path)
    except OSError:
        return None


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# --- its tables -------------------------------------------------------------------------------------------------------


def cell_key(campaign: Campaign, record: CellRecord) -> dict[str, Any]:
    """The columns that all rows of a cell share."""
    variant, variant_dir = layout.text(record.variant), layout.text(record.variant_dir)
    return layout.campaign_key(campaign) | {"variant": variant, "rate": float(record.rate), "variant_dir": variant_dir}


class Reading:
    """One cell that is being read into `record`; `variant` is the name of its folder's variant."""

    def __init__(self, listing: CellListing, variant: str) -> None:
        self.listing, self.cell = listing, listing.cell
        self.record = CellRecord(self.cell.rate, self.cell.variant_dir, variant)
        self.key = cell_key(self.cell.campaign, self.record)
        self.metadata = Metadata()

    def path(self, file: RawFile) -> Path:
        return self.cell.path / file.name

    def source(self, name: str) -> str:
        """A file of the cell by its path relative to the archive."""
        return layout.text((self.cell.path / name).relative_to(self.cell.campaign.root).as_posix())

    def problem(self, run: int | None, name: str, problem: str) -> None:
        """`name` is the file it is about, if any."""
        self.record.problems.append(Problem(run, self.source(name), redact.text(problem)))

    def fault(self, run: int | None, name: str, code: str, *, unfit: bool = True, **values: str | None) -> None:
        """A problem by a code of `exclusion` and its values; only where it is `unfit` the data are."""
        source = self.source(name)
        found = Exclusion(code, source.rpartition("/")[2], **redact.texts(values))
        self.record.problems.append(Problem(run, source, found.problem, found if unfit else None))

    def sha256(self, file: RawFile | None) -> str | None:
        source = self.record.sources.get(file.name) if file else None
        return source.sha256 if source else None


class CellTables:
    """The cell's own files of `OF_CELLS`; see `cell_tables`."""

    def __init__(self, tables: Path, cell: Cell, stack: ExitStack) -> None:
        self._tables, self._cell, self._stack = tables, cell, stack
        self._pending: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._rows: Counter[str] = Counter()  # pending, and their bytes
        self._bytes: Counter[str] = Counter()
        self._writers: dict[str, pq.ParquetWriter] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows that have all columns of the table."""
        self._pending[table].append(batch)
        self._rows[table] += batch.num_rows
        self._bytes[table] += batch.nbytes
        if self._rows[table] >= _ROW_GROUP or self._bytes[table] >= _ROW_GROUP_BYTES:
            self._flush(table)

    def flush(self) -> list[str]:
        """Write what is still pending; returns the tables that have rows."""
        for table in list(self._pending):
            self._flush(table)
        return [table for table in OF_CELLS if table in self._writers]

    def _flush(self, table: str) -> None:
        batches, n_rows = self._pending.pop(table), self._rows.pop(table)
        del self._bytes[table]
        if not n_rows:
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
def cell_tables(tables: Path, reading: Reading) -> Iterator[CellTables]:
    """The cell's files, which replace the old ones when the block ends without an error; empty ones are removed."""
    with ExitStack() as stack:
        output = CellTables(tables, reading.cell, stack)
        yield output
        written = output.flush()
    for table in OF_CELLS:
        file = layout.cell_file(tables, table, reading.cell)
        if table in written:
            reading.record.tables[table] = file.stat().st_size
        else:
            file.unlink(missing_ok=True)
