"""Raw results of one campaign -> its Parquet tables; cells whose files did not change are not read again."""

import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from loadstone.archive import (
    METADATA,
    Campaign,
    CampaignListing,
    Cell,
    CellListing,
    durable,
    extension,
    failure_number,
    metadata,
    parse_rate,
    parse_timestamp,
    run_records,
    scan_campaign,
)
from loadstone.archive.stages import load_text
from loadstone.archive.staging import read_checksums
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from loadstone.process import end_with_parents
from loadstone.tables import OF_CELLS, exclusion, layout
from loadstone.tables.cell import (
    CellRecord,
    Reading,
    Source,
    cell_key,
    cell_tables,
    change,
    load_records,
    present,
    save_records,
    sha256_or_none,
)
from loadstone.tables.run_files import describe, read_run
from loadstone.text import times

# Below this much remaining work, worker processes cost more than they save: each imports for half a second or more.
_MIN_POOL_WORK_S = 3.0
_LONGEST_ERROR = 476

_Key = tuple[str, str]
_Work = list[tuple[CellListing, str]]


def convert_campaign(
    campaign: Campaign,
    tables: Path,
    canonical: Callable[[str, str], str],
    workers: int,
    log: Callable[[str], None],
) -> None:
    """Bring one campaign's tables up to date, all but those that `analyse_campaign` writes.

    `canonical(app, variant_dir)` names the variant of a folder. Only `tables` is written to. Raises LoadstoneError when
    that fails, or a program is missing; problems of the archive become rows of `problems`.
    """
    listing = scan_campaign(campaign)
    for name, why in extension.problems(campaign):
        listing.add_problem(campaign.path / name, f"{why}, so it is unknown which part later runs belong to")
    before = load_records(tables, campaign)
    records: dict[_Key, CellRecord] = {}
    work: _Work = []
    for cell in listing.cells:
        variant = canonical(campaign.app, cell.cell.variant_dir)
        record = before.get((cell.cell.rate, cell.cell.variant_dir))
        if why := _why(record, cell, variant, tables):
            log(f"reading {cell.cell} ({why})")
            work.append((cell, variant))
        elif record is not None:
            records[record.key] = record
    _remove_vanished(listing, tables, log)
    # After an interruption, cells that were being read must not count as read.
    save_records(tables, campaign, records)
    for record in _read(work, tables, workers):
        records[record.key] = record
    _write_parts(listing, records, tables)
    save_records(tables, campaign, dict(sorted(records.items())))
    log(f"{campaign}: {len(work)} of {len(listing.cells)} cells read")


def _why(record: CellRecord | None, cell: CellListing, variant: str, tables: Path) -> str:
    if record is None:
        return "not read before"
    if record.variant != variant:
        return f"its variant was {record.variant}"
    if record.extended != extension.fingerprint(cell.cell):
        return "its plan was extended"
    for table, size in record.tables.items():
        try:
            if layout.cell_file(tables, table, cell.cell).stat().st_size != size:
                return f"its {table} are damaged"
        except FileNotFoundError:
            return f"its {table} are missing"
    return change(record, cell)


def _remove_vanished(listing: CampaignListing, tables: Path, log: Callable[[str], None]) -> None:
    """Remove the Parquet files of cells that are no longer there, and what killed processes left."""
    for table in OF_CELLS:
        expected = {layout.cell_file(tables, table, cell.cell) for cell in listing.cells}
        durable.remove_temporary(layout.partition(tables, table, listing.campaign))
        for path in layout.partition(tables, table, listing.campaign).glob("*.parquet"):
            if path not in expected:
                log(f"removing {path.name} from {table}: its cell is gone")
                path.unlink()


# --- reading, in one process or several -------------------------------------------------------------------------------


def _read(work: _Work, tables: Path, workers: int) -> Iterator[CellRecord]:
    started = time.monotonic()
    for done, (cell, variant) in enumerate(work):
        elapsed_s = time.monotonic() - started
        if workers > 1 and done and elapsed_s / done * (len(work) - done) > _MIN_POOL_WORK_S:
            yield from _read_in_pool(work[done:], tables, workers)
            return
        yield read_cell(cell, variant, tables)


def _read_in_pool(work: _Work, tables: Path, workers: int) -> Iterator[CellRecord]:
    count = min(workers, len(work))
    with (
        _without_main_module(),
        ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=end_with_parents) as pool,
    ):
        try:
            for done in as_completed([pool.submit(read_cell, cell, variant, tables) for cell, variant in work]):
                yield done.result()
        except BrokenProcessPool:
            raise LoadstoneError(
                "a process that read raw results was killed, most likely for lack of memory; run again with fewer cores"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the running program: each worker would import it, and Snakemake's scripts have no guard against that."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# --- the campaign's own parts -----------------------------------------------------------------------------------------


def _write_parts(listing: CampaignListing, records: Mapping[_Key, CellRecord], tables: Path) -> None:
    ordered = [records[cell.cell.rate, cell.cell.variant_dir] for cell in listing.cells]
    problems = [
        cell_key(listing.campaign, record) | {"run": each.run, "source": each.source, "problem": each.problem}
        for record in ordered
        for each in record.problems
    ]
    problems += _listing_problems(listing, records)
    parts: dict[str, list[dict[str, Any]]] = {
        table: [row for record in ordered for row in getattr(record, table)]
        for table in ("summaries", "incidents", "planned", "failures")
    }
    parts["problems"] = problems
    parts["facts"] = [row for record in ordered for row in _facts(listing.campaign, record, tables)]
    for table, rows in parts.items():
        layout.write_rows(tables, layout.scope_file(tables, table, listing.campaign), rows, table)


def _facts(campaign: Campaign, record: CellRecord, tables: Path) -> Iterator[dict[str, Any]]:
    """A cell's runs with what was found wrong with each; a problem of the whole cell is one of every run."""
    path = layout.cell_file(tables, "requests", Cell(campaign, record.rate, record.variant_dir))
    requests_file = path.relative_to(tables).as_posix() if "requests" in record.tables else None
    for run in record.runs:
        own = [problem for problem in record.problems if problem.run in (None, run["run"])]
        faults = [asdict(problem.fault) for problem in own if problem.fault]
        problems = [f"{problem.source.rpartition('/')[2]} {problem.problem}".strip() for problem in own]
        yield run | {"faults": faults, "problems": problems, "requests_file": requests_file}


def _listing_problems(listing: CampaignListing, records: Mapping[_Key, CellRecord]) -> Iterator[dict[str, Any]]:
    """Files and folders with unknown names; those inside a cell have the cell's key."""
    prefix = len(listing.campaign.path.relative_to(listing.campaign.root).parts)
    for source, problem in listing.problems:
        parts = source.split("/")[prefix:]
        record = records.get((parts[0], parts[1])) if len(parts) > 1 and parse_rate(parts[0]) is not None else None
        key = layout.campaign_key(listing.campaign) if record is None else cell_key(listing.campaign, record)
        yield key | {"source": layout.text(source), "problem": problem}


# --- one cell ---------------------------------------------------------------------------------------------------------


def read_cell(listing: CellListing, variant: str, tables: Path) -> CellRecord:
    """Read a cell's raw files and write its own tables below `tables`, replacing what was there.

    All content becomes rows or problems. Raises LoadstoneError only when `tables` can't be written or a
    program is missing.
    """
    try:
        return _CellReader(listing, variant).read(tables)
    except (LoadstoneError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a reader's mistake about one cell must not hide all the others
        why = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
        return _CellReader(listing, variant).refuse(why, tables)


class _CellReader(Reading):
    def read(self, tables: Path) -> CellRecord:
        self._hash()
        self._read_metadata()
        self._check_sums()
        self._check_parts()
        for file in self.listing.unread:
            self.fault(file.run, file.name, exclusion.OUTSIDE_ARCHIVE, unfit=file.kind == "results")
        with cell_tables(tables, self) as output:
            files = {run: list(found) for run, found in groupby(self.listing.files, key=lambda file: file.run)}
            for run in self.listing.runs():
                read_run(self, run, files.get(run, []), output)
        self._plan()
        self._read_failures()
        return self.record

    def refuse(self, why: str, tables: Path) -> CellRecord:
        """Describe the cell without reading it: all its runs are there, and excluded."""
        for table in OF_CELLS:
            layout.cell_file(tables, table, self.cell).unlink(missing_ok=True)
        self.fault(None, "", exclusion.NOT_CONVERTED, detail=layout.text(why))
        self.record.runs += [describe(self, run) for run in self.listing.runs()]
        return self.record

    def _hash(self) -> None:
        """Before anything is read: a file that changes meanwhile then differs from its hash and is read again."""
        self.record.extended = extension.fingerprint(self.cell)
        for name, (size, mtime_ns) in present(self.listing).items():
            self.record.sources[name] = Source(size, mtime_ns, sha256_or_none(self.cell.path / name))

    # --- metadata and checksums ---------------------------------------------------------------------------------------

    def _read_metadata(self) -> None:
        self.metadata = metadata.read_cell(self.cell)
        if self.metadata.unreadable is not None:
            self.fault(None, METADATA, exclusion.METADATA_UNREADABLE, detail=self.metadata.unreadable)
        for text in self.metadata.not_understood:
            self.problem(None, METADATA, text)
        for key, named, actual in self._contradictions():
            self.fault(None, METADATA, exclusion.METADATA_DIFFER, detail=key, found=str(named), expected=actual)
        if self.metadata.variant not in (None, self.cell.variant_dir):
            text = f"was collected as {self.metadata.variant!r} and is stored in {self.cell.variant_dir!r}"
            self.problem(None, METADATA, layout.text(text))

    def _contradictions(self) -> Iterator[tuple[str, object, str]]:
        """Key, value in the metadata, value by the folder's name."""
        described, campaign = self.metadata, self.cell.campaign
        if described.load_model == "closed" and described.users is not None:
            if described.users != float(self.cell.rate):
                yield "users", described.users, self.cell.rate
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
                sums = read_checksums(self.cell.path / file.name)
            except OSError as error:
                self.problem(file.run, file.name, f"cannot be read: {error.strerror or error}")
                continue
            for line in sums:
                if line is None:
                    self.problem(file.run, file.name, "has a line that is not a checksum")
                    continue
                name, digest = line
                if (source := self.record.sources.get(name)) is None or source.sha256 is None:
                    self.problem(file.run, file.name, f"names {layout.text(name)}, which is missing")
                elif source.sha256 != digest:
                    self.fault(file.run, name, exclusion.CHANGED, expected=file.name)

    # --- all the rest -------------------------------------------------------------------------------------------------

    def _check_parts(self) -> None:
        """Exclude runs that a lost extension may have planned: they may be of another machine or target."""
        if lost := [f"{name} {why}" for name, why in extension.problems(self.cell.campaign)]:
            for run in self.listing.runs():
                if run > (self.metadata.runs or 0):
                    self.fault(run, METADATA, exclusion.NOT_PLANNED, detail=", ".join(lost))

    def _plan(self) -> None:
        positions, collected = self.metadata.positions, self.listing.collected()
        for run in range(1, min(self.metadata.runs or len(positions), metadata.MOST_RUNS) + 1):
            position = positions[run - 1] if run <= len(positions) else None
            self.record.planned.append(self.key | {"run": run, "position": position, "collected": run in collected})

    def _read_failures(self) -> None:
        """Attempts without a result. They are not runs; a run that has no result after them is a problem."""
        collected = self.listing.collected()
        for run, files in self.listing.failures().items():
            reason = "see its record"
            for file in files:
                found = run_records.read_failure(self.cell.path / file.name)
                if isinstance(found, str):
                    self.problem(run, file.name, found)
                    continue
                reason = redact.text(found.reason)
                self.record.failures.append(
                    self.key
                    | {
                        "run": run,
                        "nth": failure_number(file.name),
                        "failed_at": found.failed_at and found.failed_at.isoformat(),
                        "phase": found.phase,
                        "error": redact.text(found.error),
                        "evidence": list(map(redact.text, found.evidence)),
                        "collected": run in collected,
                        "source": self.source(file.name),
                    }
                )
            if run not in collected:
                load = load_text(self.cell.rate, self.metadata.load_model)
                text = f"run {run} of {self.cell.variant_dir} at {load} failed {times(len(files))}"
                self.problem(run, files[-1].name, layout.text(f"{text} and has no result: {reason}"))
