"""Reading one cell: its raw files once, into its own Parquet files and a `CellRecord`. Runs in worker processes."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadstone import failures, metadata
from loadstone.archive import MAIN_STREAM, METADATA, CellListing, RawFile, failure_number, parse_timestamp
from loadstone.errors import LoadstoneError
from loadstone.metadata import Metadata
from loadstone.readers import READERS, Problems, resources, run_record, vegeta_summary
from loadstone.readers.run_record import RunRecord
from loadstone.readers.stream import open_raw
from loadstone.tables import layout, schema
from loadstone.tables.error_class import error_classes
from loadstone.tables.manifest import CellRecord, Problem, Source, present, sha256
from loadstone.tables.trouble import trouble, unknown

_ROW_GROUP = 100_000
_ROW_GROUP_BYTES = 64 << 20
_PHASES = {"results": "test", "warmups": "warmup"}
_SUMMARY_SUFFIXES = ("json", "json.zst")
_RESOURCE_SUFFIXES = ("csv", "csv.zst")
_CHECKSUM = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")

# Which file counts when a run has its results in several formats: the archive's own first, then what is read fastest.
_PREFERENCE = ("json.zst", "json", "bin.zst", "bin", "csv.zst", "csv")

# Rising numbers: as differences they take almost no room.
_ENCODINGS = {"seq": "DELTA_BINARY_PACKED", "sent_at": "DELTA_BINARY_PACKED", "latency_ns": "PLAIN"}
_DICTIONARIES = [name for name in schema.REQUESTS.names if name not in _ENCODINGS]


def read_cell(listing: CellListing, variant: str, tables: Path) -> CellRecord:
    """Read a cell's raw files and write its `requests` and `resources` below `tables`, replacing what was there.

    Whatever the files hold becomes rows or problems. Raises LoadstoneError only when `tables` can't be written or a
    program is missing.
    """
    try:
        return _CellReader(listing, variant, tables).read()
    except (LoadstoneError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a reader's mistake about one cell must not hide all the others
        return _unread(listing, variant, tables, f"could not be converted: {type(error).__name__}: {error}")


def _unread(listing: CellListing, variant: str, tables: Path, why: str) -> CellRecord:
    """The record of a cell that nothing could be made of: all its runs are there, and left out."""
    reader = _CellReader(listing, variant, tables)
    reader.refuse(why[:500])
    return reader.record


class _CellReader:
    def __init__(self, listing: CellListing, variant: str, tables: Path) -> None:
        self.listing = listing
        self.cell = listing.cell
        self.tables = tables
        self.record = CellRecord(self.cell.rate, self.cell.variant_dir, variant)
        self.metadata = Metadata()
        self.key = layout.campaign_key(self.cell.campaign) | {
            "variant": layout.text(variant),
            "rate": float(self.cell.rate),
            "variant_dir": layout.text(self.cell.variant_dir),
        }
        self.main_rows: dict[int, int] = {}
        self.run_records: dict[int, RunRecord] = {}

    def read(self) -> CellRecord:
        self._hash()
        self._read_metadata()
        self._check_sums()
        chosen = self._choose()
        self._write("requests", schema.REQUESTS, self._requests(chosen))
        self._write("resources", schema.RESOURCES, self._resources())
        self._read_summaries()
        self._read_run_records()
        self._plan()
        self._read_failures()
        self._describe_runs(
            {file.run: file for file in chosen if file.kind == "results" and file.stream == MAIN_STREAM}
        )
        return self.record

    def refuse(self, why: str) -> None:
        """Describe the cell without reading it."""
        for table in ("requests", "resources"):
            layout.cell_file(self.tables, table, self.cell).unlink(missing_ok=True)
        self._problem(None, "", layout.text(why), fault=True)
        self._describe_runs({})

    def _problem(self, run: int | None, name: str, problem: str, *, fault: bool = False) -> None:
        self.record.problems.append(Problem(run, self._source(name), problem, fault))

    def _source(self, name: str) -> str:
        """A file of the cell by its path relative to the archive."""
        return layout.text((self.cell.path / name).relative_to(self.cell.campaign.root).as_posix())

    def _hash(self) -> None:
        """Before anything is read: a file that changes meanwhile then differs from its hash and is read again."""
        for name, (size, mtime_ns) in present(self.listing).items():
            self.record.sources[name] = Source(size, mtime_ns, sha256(self.cell.path / name))

    # --- metadata and checksums ---------------------------------------------------------------------------------------

    def _read_metadata(self) -> None:
        path = self.cell.path / METADATA
        try:
            open_raw(path).close()
            self.metadata = metadata.read(path)
        except FileNotFoundError:
            self.metadata = Metadata(problems=["metadata.json is missing"])
        except OSError as error:
            self.metadata = Metadata(problems=[f"metadata.json cannot be read: {error.strerror or error}"])
        for problem in self.metadata.problems:
            # "metadata.json: <key> ..." is one value that was not understood; all others mean that nothing was read.
            known = problem.startswith(f"{METADATA}: ")
            self._problem(None, METADATA, problem.removeprefix(METADATA).removeprefix(":").strip(), fault=not known)
        for what, said, is_so in self._contradictions():
            self._problem(None, METADATA, f"says that the {what} is {said!r}, its folder says {is_so!r}", fault=True)
        if self.metadata.variant not in (None, self.cell.variant_dir):
            text = f"was collected as {self.metadata.variant!r} and lies in {self.cell.variant_dir!r}"
            self._problem(None, METADATA, layout.text(text))

    def _contradictions(self) -> Iterator[tuple[str, object, object]]:
        described, campaign = self.metadata, self.cell.campaign
        if described.rate is not None and described.rate != float(self.cell.rate):
            yield "rate", described.rate, self.cell.rate
        if described.hostname not in (None, campaign.host):
            yield "hostname", described.hostname, layout.text(campaign.host)
        if described.timestamp not in (None, campaign.timestamp):
            instants = parse_timestamp(described.timestamp or ""), parse_timestamp(campaign.timestamp)
            if None in instants or instants[0] != instants[1]:
                yield "timestamp", described.timestamp, layout.text(campaign.timestamp)

    def _check_sums(self) -> None:
        """Compare the files with what ``<run>.sha256`` recorded when they were collected."""
        for file in self._files("sha256"):
            try:
                with open_raw(self.cell.path / file.name) as opened:
                    lines = opened.read(1 << 20).decode("utf-8", "surrogateescape").splitlines()
            except OSError as error:
                self._problem(file.run, file.name, f"cannot be read: {error.strerror or error}")
                continue
            for line in lines:
                if (match := _CHECKSUM.fullmatch(line)) is None:
                    self._problem(file.run, file.name, "holds a line that is no checksum")
                elif (source := self.record.sources.get(match[2])) is None or source.sha256 is None:
                    self._problem(file.run, file.name, f"names {layout.text(match[2])}, which is not there")
                elif source.sha256 != match[1].lower():
                    text = f"has changed since it was collected (its checksum differs from {file.name})"
                    self._problem(file.run, match[2], text, fault=True)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _files(self, *kinds: str) -> list[RawFile]:
        return [file for file in self.listing.files if file.kind in kinds]

    def _choose(self) -> list[RawFile]:
        """One file per run, stream and phase."""
        best: dict[tuple[int, str, str], RawFile] = {}
        for file in sorted(self._files(*_PHASES), key=_rank):
            if file.suffix not in READERS:
                self._problem(file.run, file.name, "is in a format that can't be read")
            elif (other := best.setdefault((file.run, file.stream, file.kind), file)) is not file:
                self._problem(file.run, file.name, f"is left aside: {other.name} holds the same")
        return [best[key] for key in sorted(best)]

    def _requests(self, files: list[RawFile]) -> Iterator[pa.Table]:
        """Row groups of the `requests` table."""
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        for file in files:
            for batch in self._file_requests(file):
                batches.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows >= _ROW_GROUP or size >= _ROW_GROUP_BYTES:
                    yield pa.Table.from_batches(batches)
                    batches, rows, size = [], 0, 0
        if batches:
            yield pa.Table.from_batches(batches)

    def _file_requests(self, file: RawFile) -> Iterator[pa.RecordBatch]:
        problems, rows = Problems(), 0
        constant = self.key | {"run": file.run, "stream": file.stream, "phase": _PHASES[file.kind]}
        ends = self.metadata.mode == "serial" and _version(self.metadata) < float(metadata.VERSION)
        for batch in READERS[file.suffix](self.cell.path / file.name, problems):
            rows += batch.num_rows
            yield _complete(batch, constant, stamps_the_end=ends)
        if rows == 0 and not problems.texts():
            problems.truncated = "it holds no record"
        for text in problems.texts():
            self._problem(file.run, file.name, text, fault=file.kind == "results")
        if file.kind == "results" and file.stream == MAIN_STREAM:
            self.main_rows[file.run] = rows

    def _write(self, table: str, columns: pa.Schema, groups: Iterator[pa.Table]) -> None:
        path = layout.cell_file(self.tables, table, self.cell)
        with layout.written(self.tables, path) as temporary, ExitStack() as stack:
            writer = None
            for group in groups:
                if writer is None:
                    options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
                    if table == "requests":
                        options |= {"use_dictionary": _DICTIONARIES, "column_encoding": _ENCODINGS}
                    writer = stack.enter_context(pq.ParquetWriter(temporary, columns, **options))
                writer.write_table(group, row_group_size=2 * _ROW_GROUP)
        if writer is None:
            path.unlink(missing_ok=True)
        else:
            self.record.tables.append(table)

    # --- all the rest -------------------------------------------------------------------------------------------------

    def _resources(self) -> Iterator[pa.Table]:
        for file in self._files("resources"):
            if file.suffix not in _RESOURCE_SUFFIXES:
                self._problem(file.run, file.name, "is in a format that can't be read")
                continue
            problems = Problems()
            rows: list[dict[str, Any]] = []
            for row in resources.read(self.cell.path / file.name, problems):
                rows.append(self.key | {"run": file.run} | row)
                if len(rows) == _ROW_GROUP:
                    yield pa.Table.from_pylist(rows, schema.RESOURCES)
                    rows = []
            if rows:
                yield pa.Table.from_pylist(rows, schema.RESOURCES)
            for text in problems.texts():
                self._problem(file.run, file.name, text)

    def _read_summaries(self) -> None:
        for file in self._files("summary"):
            problems = Problems()
            if file.suffix not in _SUMMARY_SUFFIXES:
                problems.damaged = "it is in a format that can't be read"
            elif (row := vegeta_summary.read(self.cell.path / file.name, problems)) is not None:
                self.record.summaries.append(self.key | {"run": file.run, "stream": file.stream} | row)
                rows = self.main_rows.get(file.run)
                if file.stream == MAIN_STREAM and rows is not None and row["requests"] != rows:
                    text = f"counts {row['requests']} requests, the results hold {rows}"
                    self._problem(file.run, file.name, text)
            for text in problems.texts():
                self._problem(file.run, file.name, text)

    def _read_run_records(self) -> None:
        for file in self._files("run"):
            problems = Problems()
            record = run_record.read(self.cell.path / file.name, problems)
            if record is not None:
                self.run_records[file.run] = record
                self.record.incidents += [self.key | {"run": file.run} | row for row in record.incidents]
                told = trouble(record.incidents)
                for text in [*([f"tells of {told}"] if told else []), *unknown(record.incidents)]:
                    self._problem(file.run, file.name, text)
            for text in problems.texts():
                self._problem(file.run, file.name, text)

    def _plan(self) -> None:
        positions, collected = self.metadata.positions, self.listing.collected()
        for run in range(1, min(self.metadata.runs or len(positions), metadata.MOST_RUNS) + 1):
            position = positions[run - 1] if run <= len(positions) else None
            self.record.planned.append(self.key | {"run": run, "position": position, "collected": run in collected})

    def _read_failures(self) -> None:
        """Tries that gave no result. They are no runs; a run that has no result after them is a problem."""
        collected = self.listing.collected()
        for run, files in self.listing.failures().items():
            reason = "see its record"
            for file in files:
                found = failures.read(self.cell.path / file.name)
                if isinstance(found, str):
                    self._problem(run, file.name, found)
                    continue
                reason = found.reason
                self.record.failures.append(
                    self.key
                    | {
                        "run": run,
                        "nth": failure_number(file.name),
                        "failed_at": found.failed_at and found.failed_at.isoformat(),
                        "phase": found.phase,
                        "error": found.error,
                        "evidence": list(found.evidence),
                        "collected": run in collected,
                        "source": layout.text(
                            (self.cell.path / file.name).relative_to(self.cell.campaign.root).as_posix()
                        ),
                    }
                )
            if run not in collected:
                text = f"run {run} of {self.cell.variant_dir} at {self.cell.rate}/s failed {failures.times(len(files))}"
                self._problem(run, files[-1].name, layout.text(f"{text} and has no result: {reason}"))

    def _sha256(self, file: RawFile | None) -> str | None:
        source = self.record.sources.get(file.name) if file else None
        return source.sha256 if source else None

    def _describe_runs(self, main: dict[int, RawFile]) -> None:
        described = self.metadata
        summaries = {row["run"] for row in self.record.summaries if row["stream"] == MAIN_STREAM}
        for run in self.listing.runs():
            if run not in main:
                # What the tool reported of such a run can be compared with what it reported of others.
                self._problem(run, "", "has no results", fault=run not in summaries)
            told = self.run_records.get(run, RunRecord([], None))
            name = main[run].name if run in main else f"{run}.summary.json" if run in summaries else ""
            self.record.runs.append(
                self.key
                | {
                    "run": run,
                    "load_model": described.load_model,
                    "generator": described.generator,
                    "metadata_version": described.version,
                    "evidence": "summary" if run not in main and run in summaries else "raw",
                    "duration_s": described.duration_s,
                    "warmup_rate": described.warmup_rate,
                    "replicas": described.replicas,
                    "labels": described.labels,
                    "inferred": described.inferred,
                    "generator_cpus": told.generator_cpus,
                    "trouble": trouble(told.incidents),
                    "expected_requests": described.expected_requests,
                    "results_sha256": self._sha256(main.get(run)),
                    "source": self._source(name),
                }
            )


def _rank(file: RawFile) -> tuple[int, RawFile]:
    return (_PREFERENCE.index(file.suffix) if file.suffix in _PREFERENCE else len(_PREFERENCE), file)


def _version(described: Metadata) -> float:
    try:
        return float(described.version)
    except ValueError:
        return float(metadata.VERSION)


def _complete(batch: pa.RecordBatch, constant: dict[str, Any], *, stamps_the_end: bool) -> pa.RecordBatch:
    """A reader's batch with all columns of the `requests` table.

    The predecessor's serial mode (metadata 3 and 4) stamped a request when it had ended; `sent_at` is always the start.
    """
    columns = {name: batch.column(name) for name in batch.schema.names}
    if stamps_the_end:
        latency = columns["latency_ns"].cast(pa.duration("ns"))
        columns["sent_at"] = pc.subtract(columns["sent_at"], latency)
    columns["error_class"] = error_classes(columns["code"], columns["error"])
    arrays = [
        columns[field.name]
        if field.name in columns
        else pa.repeat(pa.scalar(constant[field.name], field.type), len(batch))
        for field in schema.REQUESTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.REQUESTS)
