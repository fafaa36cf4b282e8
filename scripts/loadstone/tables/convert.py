"""Raw results of one campaign -> its Parquet tables; cells whose files did not change are not read again."""

import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, CampaignListing, Cell, CellListing, parse_rate, scan_campaign
from loadstone.errors import LoadstoneError
from loadstone.process import end_with_parents
from loadstone.tables import layout, manifest, schema
from loadstone.tables.cell import read_cell
from loadstone.tables.manifest import CellRecord

# Below this much remaining work, worker processes cost more than they bring: each imports for half a second or more.
_WORTH_WORKERS_S = 3.0

_Key = tuple[str, str]
_Work = list[tuple[CellListing, str]]


def convert_campaign(
    campaign: Campaign,
    tables: Path,
    canonical: Callable[[str, str], str],
    workers: int,
    log: Callable[[str], None],
) -> None:
    """Bring one campaign's tables up to date, all but those that `analyse_campaign` makes of them.

    `canonical(app, variant_dir)` names the variant of a folder. Only `tables` is written to. Raises LoadstoneError when
    that fails, or a program is missing; whatever is wrong in the archive becomes rows of `problems`.
    """
    listing = scan_campaign(campaign)
    before = manifest.load(tables, campaign)
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
    # What an interruption leaves half done must not count as read.
    manifest.save(tables, campaign, records)
    for record in _read(work, tables, workers):
        records[record.key] = record
    _write_parts(listing, records, tables)
    manifest.save(tables, campaign, dict(sorted(records.items())))
    log(f"{campaign}: {len(work)} of {len(listing.cells)} cells read")


def _why(record: CellRecord | None, cell: CellListing, variant: str, tables: Path) -> str:
    if record is None:
        return "not read before"
    if record.variant != variant:
        return f"its variant was {record.variant}"
    for table, size in record.tables.items():
        try:
            if layout.cell_file(tables, table, cell.cell).stat().st_size != size:
                return f"its {table} are damaged"
        except FileNotFoundError:
            return f"its {table} are missing"
    return manifest.change(record, cell)


def _remove_vanished(listing: CampaignListing, tables: Path, log: Callable[[str], None]) -> None:
    """Remove the Parquet files of cells that are no longer there."""
    for table in schema.OF_CELLS:
        expected = {layout.cell_file(tables, table, cell.cell) for cell in listing.cells}
        for path in layout.partition(tables, table, listing.campaign).glob("*.parquet"):
            if path not in expected:
                log(f"removing {path.name} from {table}: its cell is gone")
                path.unlink()


# --- reading, in one process or several ------------------------------------------------------------------------------


def _read(work: _Work, tables: Path, workers: int) -> Iterator[CellRecord]:
    started = time.monotonic()
    for done, (cell, variant) in enumerate(work):
        elapsed_s = time.monotonic() - started
        if workers > 1 and done and elapsed_s / done * (len(work) - done) > _WORTH_WORKERS_S:
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
            yield from _results(pool.submit(read_cell, cell, variant, tables) for cell, variant in work)
        except BrokenProcessPool:
            raise LoadstoneError(
                "a process that read raw results was killed, most likely for lack of memory; run again with fewer cores"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _results(futures: Iterable[Future[CellRecord]]) -> Iterator[CellRecord]:
    for future in as_completed(list(futures)):
        yield future.result()


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the running program: each worker would import it, and Snakemake's scripts have no guard against that."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# --- the campaign's own parts ----------------------------------------------------------------------------------------


def _write_parts(listing: CampaignListing, records: Mapping[_Key, CellRecord], tables: Path) -> None:
    ordered = [records[cell.cell.rate, cell.cell.variant_dir] for cell in listing.cells]
    problems = [*_cell_problems(listing.campaign, ordered), *_listing_problems(listing, records)]
    parts: dict[str, tuple[Sequence[Mapping[str, Any]], Any]] = {
        "summaries": ([row for record in ordered for row in record.summaries], schema.SUMMARIES),
        "incidents": ([row for record in ordered for row in record.incidents], schema.INCIDENTS),
        "planned": ([row for record in ordered for row in record.planned], schema.PLANNED),
        "failures": ([row for record in ordered for row in record.failures], schema.FAILURES),
        "problems": (problems, schema.PROBLEMS),
        "facts": (
            [fact for record in ordered for fact in _facts(record, _requests_file(listing.campaign, record, tables))],
            schema.FACTS,
        ),
    }
    for table, (rows, columns) in parts.items():
        path = layout.partition(tables, table, listing.campaign) / layout.PART
        layout.write_rows(tables, path, rows, columns)


def _requests_file(campaign: Campaign, record: CellRecord, tables: Path) -> str | None:
    """The cell's requests relative to the tables' folder, or None when it has none."""
    if "requests" not in record.tables:
        return None
    path = layout.cell_file(tables, "requests", Cell(campaign, record.rate, record.variant_dir))
    return path.relative_to(tables).as_posix()


def _facts(record: CellRecord, requests_file: str | None) -> Iterator[dict[str, Any]]:
    """A cell's runs with what was found wrong with each; a problem of the whole cell is one of every run."""
    for run in record.runs:
        told = [problem for problem in record.problems if problem.run in (None, run["run"])]
        texts = [(problem.fault, f"{problem.source.rpartition('/')[2]} {problem.problem}".strip()) for problem in told]
        faults = [text for fault, text in texts if fault]
        problems = [text for _, text in texts]
        yield run | {"faults": faults, "problems": problems, "requests_file": requests_file}


def _cell_problems(campaign: Campaign, records: Iterable[CellRecord]) -> Iterator[dict[str, Any]]:
    for record in records:
        for problem in record.problems:
            key = _cell_key(campaign, record)
            yield key | {"run": problem.run, "source": problem.source, "problem": problem.problem}


def _listing_problems(listing: CampaignListing, records: Mapping[_Key, CellRecord]) -> Iterator[dict[str, Any]]:
    """What could not be understood by its name; inside a cell it carries the cell's key."""
    prefix = len(listing.campaign.path.relative_to(listing.campaign.root).parts)
    for source, problem in listing.problems:
        parts = source.split("/")[prefix:]
        record = records.get((parts[0], parts[1])) if len(parts) > 1 and parse_rate(parts[0]) is not None else None
        key = layout.campaign_key(listing.campaign) if record is None else _cell_key(listing.campaign, record)
        yield key | {"source": layout.text(source), "problem": problem}


def _cell_key(campaign: Campaign, record: CellRecord) -> dict[str, Any]:
    named = {"variant": layout.text(record.variant), "variant_dir": layout.text(record.variant_dir)}
    return layout.campaign_key(campaign) | named | {"rate": float(record.rate)}
