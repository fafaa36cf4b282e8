"""Reading one cell: its raw files once, into its own Parquet files and a `CellRecord`. Runs in worker processes."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from loadstone.archive import METADATA, CellListing, failure_number, failures, metadata, parse_timestamp
from loadstone.archive.durable import open_raw
from loadstone.archive.stages import load_text
from loadstone.errors import LoadstoneError
from loadstone.tables import layout, schema
from loadstone.tables.cell_writer import Reading, opened
from loadstone.tables.manifest import CellRecord, Source, present, sha256
from loadstone.tables.run_files import describe, read_run

_CHECKSUM = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


def read_cell(listing: CellListing, variant: str, tables: Path) -> CellRecord:
    """Read a cell's raw files and write its own tables below `tables`, replacing what was there.

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
        self.key = layout.campaign_key(self.cell.campaign) | {
            "variant": layout.text(variant),
            "rate": float(self.cell.rate),
            "variant_dir": layout.text(self.cell.variant_dir),
        }
        self.reading = Reading(listing, self.record, self.key)
        self._problem = self.reading.problem

    def read(self) -> CellRecord:
        self._hash()
        self._read_metadata()
        self._check_sums()
        with opened(self.tables, self.reading) as output:
            runs = set(self.listing.runs())
            for run, files in groupby(self.listing.files, key=lambda file: file.run):
                if run in runs:
                    read_run(self.reading, run, list(files), output)
        self._plan()
        self._read_failures()
        return self.record

    def refuse(self, why: str) -> None:
        """Describe the cell without reading it."""
        for table in schema.OF_CELLS:
            layout.cell_file(self.tables, table, self.cell).unlink(missing_ok=True)
        self._problem(None, "", layout.text(why), fault=True)
        self.record.runs += [describe(self.reading, run) for run in self.listing.runs()]

    def _hash(self) -> None:
        """Before anything is read: a file that changes meanwhile then differs from its hash and is read again."""
        for name, (size, mtime_ns) in present(self.listing).items():
            self.record.sources[name] = Source(size, mtime_ns, sha256(self.cell.path / name))

    # --- metadata and checksums ---------------------------------------------------------------------------------------

    def _read_metadata(self) -> None:
        path = self.cell.path / METADATA
        try:
            open_raw(path).close()
            self.reading.metadata = metadata.read(path)
        except FileNotFoundError:
            self.reading.metadata = metadata.nothing("metadata.json is missing")
        except OSError as error:
            self.reading.metadata = metadata.nothing(f"metadata.json cannot be read: {error.strerror or error}")
        for problem in self.reading.metadata.problems:
            # "metadata.json: <key> ..." is one value that was not understood; all others mean that nothing was read.
            known = problem.startswith(f"{METADATA}: ")
            self._problem(None, METADATA, problem.removeprefix(METADATA).removeprefix(":").strip(), fault=not known)
        for what, said, is_so in self._contradictions():
            self._problem(None, METADATA, f"says that the {what} is {said!r}, its folder says {is_so!r}", fault=True)
        if self.reading.metadata.variant not in (None, self.cell.variant_dir):
            text = f"was collected as {self.reading.metadata.variant!r} and lies in {self.cell.variant_dir!r}"
            self._problem(None, METADATA, layout.text(text))

    def _contradictions(self) -> Iterator[tuple[str, object, object]]:
        described, campaign = self.reading.metadata, self.cell.campaign
        if described.load_model == "closed" and described.users is not None:
            if described.users != float(self.cell.rate):
                yield "number of users", described.users, self.cell.rate
        elif described.rate is not None and described.rate != float(self.cell.rate):
            yield "rate", described.rate, self.cell.rate
        if described.hostname not in (None, campaign.host):
            yield "hostname", described.hostname, layout.text(campaign.host)
        if described.timestamp not in (None, campaign.timestamp):
            instants = parse_timestamp(described.timestamp or ""), parse_timestamp(campaign.timestamp)
            if None in instants or instants[0] != instants[1]:
                yield "timestamp", described.timestamp, layout.text(campaign.timestamp)

    def _check_sums(self) -> None:
        """Compare the files with what ``<run>.sha256`` recorded when they were collected."""
        for file in (file for file in self.listing.files if file.kind == "sha256"):
            try:
                with open_raw(self.cell.path / file.name) as sums:
                    lines = sums.read(1 << 20).decode("utf-8", "surrogateescape").splitlines()
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

    # --- all the rest -------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        positions, collected = self.reading.metadata.positions, self.listing.collected()
        for run in range(1, min(self.reading.metadata.runs or len(positions), metadata.MOST_RUNS) + 1):
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
                        "source": self.reading.source(file.name),
                    }
                )
            if run not in collected:
                load = load_text(self.cell.rate, self.reading.metadata.load_model)
                text = f"run {run} of {self.cell.variant_dir} at {load} failed {failures.times(len(files))}"
                self._problem(run, files[-1].name, layout.text(f"{text} and has no result: {reason}"))
