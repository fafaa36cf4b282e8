"""DuckDB over the tables: a connection with one view per table, and the database file that holds the same views."""

import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.tables import layout
from loadstone.tables.schema import TABLES

_PARTITIONS = "app=*/host=*/timestamp=*"
_FILES = f"{_PARTITIONS}/*.parquet"

# Written by their own stage; without rows they have no view.
_OPTIONAL = ("comparisons",)


def connect(tables: Path, campaigns: Sequence[Campaign] | None = None) -> duckdb.DuckDBPyConnection:
    """A connection in memory with a view per table, limited to `campaigns` unless that is None; times are UTC.

    A table without rows has its columns all the same.
    """
    connection = open_memory()
    for table in (*TABLES, *_OPTIONAL):
        add_view(connection, tables, table, TABLES.get(table), campaigns)
    return connection


def add_view(
    connection: duckdb.DuckDBPyConnection,
    tables: Path,
    table: str,
    columns: pa.Schema | None,
    campaigns: Sequence[Campaign] | None,
) -> None:
    """One view of `connect`. Without rows it has `columns`; without those too there is no view."""
    if files := _files(tables, table, campaigns):
        connection.sql(sql.load("view"), params={"files": files}).create_view(table)
    elif columns is not None:
        connection.from_arrow(columns.empty_table()).create_view(table)


def open_memory() -> duckdb.DuckDBPyConnection:
    """An empty database in memory that shows times in UTC."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def build_database(tables: Path, database: Path, project_root: Path) -> None:
    """Write the DuckDB file with one view per table, replacing it in one step. It opens read-only.

    Views name the tables relative to `project_root` when they lie below it (then the file opens from there, and the
    project can be moved), else by absolute path.
    """
    below = tables.resolve().is_relative_to(project_root.resolve())
    shown = tables.resolve().relative_to(project_root.resolve()) if below else tables.resolve()
    database = database.absolute()
    temporary = database.with_name(f".{database.name}.tmp")
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        with chdir(project_root), duckdb.connect(str(temporary)) as connection:
            for table in (*TABLES, *_OPTIONAL):
                if found := _files(shown, table, None):
                    files, query = found, "view"
                elif table in TABLES:
                    files, query = [layout.pattern(_write_empty(shown, table, TABLES[table]))], "view_empty"
                else:
                    continue
                connection.sql(sql.load(query), params={"files": files}).create_view(table)
        temporary.replace(database)
    except OSError as error:
        raise LoadstoneError(f"{database} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def prune(tables: Path, campaigns: Sequence[Campaign]) -> None:
    """Remove partitions and manifests of campaigns that the archive no longer holds. Only `tables` is touched."""
    manifests = {layout.manifest_file(tables, campaign) for campaign in campaigns}
    for path in tables.glob(f"{layout.MANIFESTS}/*/*/*.json"):
        if path not in manifests:
            path.unlink()
    for folder in tables.glob(f"*/{_PARTITIONS}"):
        table = folder.relative_to(tables).parts[0]
        if folder not in {layout.partition(tables, table, campaign) for campaign in campaigns}:
            if folder.is_symlink():
                folder.unlink()
            else:
                shutil.rmtree(folder)
            for parent in list(folder.parents)[:2]:
                if not any(parent.iterdir()):
                    parent.rmdir()


def _files(tables: Path, table: str, campaigns: Sequence[Campaign] | None) -> list[str]:
    """Patterns for DuckDB, each of which matches at least one file."""
    if campaigns is None:
        return [f"{layout.pattern(tables / table)}/{_FILES}"] if any((tables / table).glob(_FILES)) else []
    folders = (layout.partition(tables, table, campaign) for campaign in campaigns)
    return [f"{layout.pattern(folder)}/*.parquet" for folder in folders if any(folder.glob("*.parquet"))]


def _write_empty(tables: Path, table: str, columns: pa.Schema) -> Path:
    path = tables / ".empty" / f"{table}.parquet"
    with layout.written(tables, path) as temporary:
        pq.write_table(columns.empty_table(), temporary)
    return path
