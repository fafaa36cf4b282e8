"""Paths of derived files: the only module that builds a path below the tables' folder, or writes one.

``<tables>/<table>/app_dir=<app>/host_dir=<host>/timestamp_dir=<timestamp>/<file>.parquet``, every part
percent-encoded. The folders name no column of the tables: a reader that detects Hive partitions takes the key from the
files, where DuckDB would guess a type for it (and drop the zone of `timestamp`) and pandas would not read it at all.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.archive import Campaign, Cell, encode
from loadstone.archive.durable import replace
from loadstone.archive.trace_dumps import Dump
from loadstone.errors import LoadstoneError
from loadstone.tables import OF_CELLS, OF_DUMPS, OF_LISTINGS

if TYPE_CHECKING:
    import pyarrow as pa

PART = "part.parquet"
MANIFESTS = ".manifest"
ANSWERS = ".answers"
PARTITIONS = "app_dir=*/host_dir=*/timestamp_dir=*"
FORMER_PARTITIONS = "app=*/host=*/timestamp=*"  # until version 14 of the tables
_LONGEST_NAME = 200
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"  # how partitioned tables write NULL


def text(name: str) -> str:
    """A file or folder name as text for tables. Bytes that are not UTF-8 are escaped by a backslash."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def campaign_key(campaign: Campaign) -> dict[str, str]:
    """The columns that name a campaign."""
    return {"app": text(campaign.app), "host": text(campaign.host), "timestamp": text(campaign.timestamp)}


def partition(tables: Path, table: str, of: Campaign | Dump) -> Path:
    """The folder of one table's files of a campaign or a dump; parts of a dump's campaign that are unknown are NULL."""
    named = {"app_dir": of.app, "host_dir": of.host, "timestamp_dir": of.timestamp}
    parts = (f"{name}={encode(text(value)) or _UNKNOWN}" for name, value in named.items())
    return tables.joinpath(table, *parts)


def cell_file(tables: Path, table: str, cell: Cell) -> Path:
    """One table's file of one cell."""
    name = f"{cell.rate}_{encode(text(cell.variant_dir))}"
    if len(name.encode()) > _LONGEST_NAME:
        name = (
            f"{name.encode()[:_LONGEST_NAME].decode(errors='ignore')}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        )
    return partition(tables, table, cell.campaign) / f"{name}.parquet"


def dump_file(tables: Path, table: str, dump: Dump) -> Path:
    """The file of one dump's rows of a table."""
    return partition(tables, table, dump) / f"{dump.key}.parquet"


def comparison_file(tables: Path, comparison: str, table: str = "comparisons") -> Path:
    """The file of one comparison's rows of a table, by its id."""
    return tables / table / f"{comparison}.parquet"


def pattern(path: Path) -> str:
    """A path for DuckDB's functions, with glob characters escaped."""
    return escape(str(path))


def manifest_file(tables: Path, campaign: Campaign) -> Path:
    """The record of what a campaign's tables were made from."""
    return tables / MANIFESTS / _record_name(campaign)


def cache_file(tables: Path, of: Campaign | str) -> Path:
    """The cache of what the last analysis of a campaign, or of a comparison by its id, computed per cell."""
    return tables / ANSWERS / (f"{of}.json" if isinstance(of, str) else _record_name(of))


def _record_name(campaign: Campaign) -> str:
    return "/".join(encode(value) for value in campaign_key(campaign).values()) + ".json"


def scope_file(tables: Path, table: str, of: Campaign | str) -> Path:
    """The file of one scope's rows of a table: of a campaign, or of a comparison by its id."""
    return comparison_file(tables, of, table) if isinstance(of, str) else partition(tables, table, of) / PART


def prepare_folder(tables: Path, folder: Path) -> None:
    """Make a folder below `tables`. Raises LoadstoneError when a link on the way leads out of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadstoneError(f"the folder {folder} cannot be created: {error.strerror}") from None
    if not folder.resolve().is_relative_to(tables.resolve()):
        raise LoadstoneError(f"{folder} resolves to a path outside {tables}: remove the symbolic link and run again")


@contextmanager
def written(tables: Path, path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends without an error, and is removed otherwise."""
    prepare_folder(tables, path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        if temporary.exists():
            temporary.replace(path)
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def arrow_rows(rows: Sequence[Mapping[str, Any]], schema: "pa.Schema") -> list[dict[str, Any]]:
    """Arrow wants maps as pairs, and floats for large integers; times come as text out of the manifest."""
    import pyarrow as pa  # noqa: PLC0415 - as in `write_rows`

    pairs = [field.name for field in schema if pa.types.is_map(field.type)]
    floats = [field.name for field in schema if pa.types.is_floating(field.type)]
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    found = []
    for row in rows:
        changed = {name: list(row[name].items()) for name in pairs if isinstance(row.get(name), Mapping)}
        changed |= {name: datetime.fromisoformat(row[name]) for name in times if isinstance(row.get(name), str)}
        changed |= {name: float(row[name]) for name in floats if isinstance(row.get(name), int)}
        found.append({**row, **changed})
    return found


def write_rows(
    tables: Path, path: Path, rows: Sequence[Mapping[str, Any]], table: str, *, keep_empty: bool = False
) -> None:
    """Write rows of a table as one Parquet file in one step; without rows the file is removed unless `keep_empty`."""
    if not rows and not keep_empty:
        path.unlink(missing_ok=True)
        return
    # Every command of Snakemake imports this module, for the names of files, and writes none.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from loadstone.tables.schema import SCHEMAS  # noqa: PLC0415

    columns = SCHEMAS[table]
    with written(tables, path) as temporary:
        pq.write_table(pa.Table.from_pylist(arrow_rows(rows, columns), columns), temporary, compression="zstd")


def write_tables(tables: Path, of: Campaign | str, content: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write the rows of several tables that are about one scope (see `scope_file`), even when there are no rows."""
    for table, rows in content.items():
        write_rows(tables, scope_file(tables, table, of), rows, table, keep_empty=True)


# --- digests of tables ------------------------------------------------------------------------------------------------


def converted_digest(tables: Path, campaign: Campaign) -> str:
    """A digest of a campaign's converted files by name and size; a missing or truncated file changes it."""
    files = [scope_file(tables, table, campaign) for table in OF_LISTINGS]
    for table in OF_CELLS:
        files += partition(tables, table, campaign).glob("*.parquet")
    return _digest_of_sizes(tables, files)


def dump_digest(tables: Path, dump: Dump) -> str:
    """The same for a trace dump's files."""
    return _digest_of_sizes(tables, (dump_file(tables, table, dump) for table in OF_DUMPS))


def _digest_of_sizes(tables: Path, files: Iterable[Path]) -> str:
    digest, prefix = hashlib.sha256(), len(os.fsencode(tables))
    for file in sorted(files, key=os.fsencode):
        with suppress(FileNotFoundError, NotADirectoryError):
            digest.update(b"%s %d\n" % (os.fsencode(file)[prefix:], file.stat().st_size))
    return digest.hexdigest()[:16]


# --- the database of a folder of tables -------------------------------------------------------------------------------

DATABASE = "loadstone.duckdb"


def database_of(tables: Path) -> Path:
    """The database file of a folder of tables."""
    return tables.parent / DATABASE


def check_database_owner(tables: Path) -> None:
    """Raise LoadstoneError when the database is that of other tables that are still there."""
    try:
        owner = _owner_file(tables).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return
    other = tables.parent / owner
    if owner != tables.name and (other / ".done").is_dir():
        raise LoadstoneError(
            f"{database_of(tables)} shows the tables in {other}; those in {tables} need a folder of their own above "
            f"them, such as {tables.parent / tables.name / 'tables'}. If {other} is no longer needed, remove it"
        )


def claim_database(tables: Path) -> None:
    """Record that the database shows these tables."""
    replace(_owner_file(tables), tables.name.encode())


def _owner_file(tables: Path) -> Path:
    # By its name alone, so that the folder above both can be moved and copied.
    return tables.parent / f".{DATABASE}.tables"
