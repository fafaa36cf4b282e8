"""DuckDB over the tables: a connection with one view per table, and the database file that holds the same views."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.readers import load_generators
from loadstone.tables import COMPARED, PLAIN, SCOPED, exclusion, layout
from loadstone.tables.schema import SCHEMAS, TABLES, VIEWS, sql_script

# Errors of reading a damaged table; the others than DuckDB's own are for names in it that are not UTF-8.
UNREADABLE = (duckdb.Error, UnicodeDecodeError, RuntimeError)

_FILES = "*.parquet"
_OF_DUMPS = "traces-*~*.parquet"


def connect(tables: Path, campaigns: Sequence[Campaign] | None = None) -> duckdb.DuckDBPyConnection:
    """A connection of `open_memory` with a view per table, limited to `campaigns` unless that is None."""
    connection = open_memory()
    if campaigns and len(campaigns) == 1:  # a page has dozens of queries; of 1,000 campaigns this takes 350 MiB
        connection.execute("SET SESSION parquet_metadata_cache = true")
    viewed = {table for table in TABLES if table != "generators" and _viewed(connection, tables, table, campaigns)}
    if "resources" in viewed:
        connection.execute(sql.load("resource_usage").replace("CREATE VIEW", "CREATE TEMP VIEW"))
    return connection


def add_view(
    connection: duckdb.DuckDBPyConnection, tables: Path, table: str, campaigns: Sequence[Campaign] | None
) -> None:
    """A view of one table, as in `connect`, instead of the one that the connection may have."""
    if not _viewed(connection, tables, table, campaigns):
        connection.execute(f"DROP VIEW IF EXISTS temp.{table}")


def _viewed(
    connection: duckdb.DuckDBPyConnection, tables: Path, table: str, campaigns: Sequence[Campaign] | None
) -> bool:
    """Create a view of one table; False without files, when there is nothing to view."""
    if not (files := table_files(tables, table, campaigns)):
        return False
    try:
        _create_view(connection, f"TEMP VIEW {table}", _query(table), files)
    except UNREADABLE as error:
        raise damaged(error, [Path(file) for file in files]) from None
    return True


def _create_view(connection: duckdb.DuckDBPyConnection, view: str, query: str, files: Sequence[str]) -> None:
    """Create a view with the names of its files as literals: no parameter can be bound to a view."""
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    connection.execute(f"CREATE OR REPLACE {view} AS " + sql.load(query).replace("$files", f"[{listed}]"))


def rows(connection: duckdb.DuckDBPyConnection, query: str, **values: Any) -> list[dict[str, Any]]:
    """The rows of a query, to which `values` are bound as its parameters."""
    found: list[dict[str, Any]] = connection.sql(query, params=values).to_arrow_table().to_pylist()
    return found


def damaged(error: Exception, files: Sequence[Path] = ()) -> LoadstoneError:
    """The error for a table's file that can't be read any more; such files are never removed automatically.

    `files` were read, for errors that name none.
    """
    text = (str(error).partition(" Error: ")[2] or str(error)).splitlines()[0]
    which = "that file"
    if files and ".parquet" not in text:
        which = os.path.commonpath(files) + (", or one of the files in it," if len({*files}) > 1 else "")
    return LoadstoneError(
        f"a table cannot be read: {text}. Remove {which}; the next command creates it again from the archive"
    )


@contextmanager
def reading(files: Sequence[Path]) -> Iterator[None]:
    """Raises LoadstoneError (see `damaged`) where a query over these files can't read one of them."""
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise  # the tables are sound
    except UNREADABLE as error:
        raise damaged(error, files) from None


def open_memory() -> duckdb.DuckDBPyConnection:
    """A connection with every table, all without rows but `generators`, and the macro of ``measured_requests.sql``.

    Times are UTC. All connections share one database in memory, so views of one of them are temporary.
    """
    return _shared().cursor()


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    """Creating it takes longer than reading a campaign's tables."""
    connection = duckdb.connect(config={"threads": 1})  # jobs that query have one core
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute(sql.load("measured_requests"))
    connection.execute(sql_script())
    for view in VIEWS:
        connection.execute(sql.load(view))
    rows = pa.Table.from_pylist(list(load_generators.rows()), SCHEMAS["generators"])
    connection.from_arrow(rows).insert_into("generators")
    return connection


def excluded_runs(tables: Path, campaigns: Sequence[Campaign]) -> list[str]:
    """A sentence for every campaign that has excluded runs."""
    with open_memory() as connection:
        add_view(connection, tables, "runs", campaigns)
        found = rows(connection, sql.load("excluded_runs"))
    texts = []
    for row in found:
        some = "" if row["n_alike"] == row["n_excluded"] else f"{row['n_alike']} of them: "
        texts.append(
            f"{row['app']}/{row['host']}/{row['timestamp']}: {row['n_excluded']} of {row['runs']} runs excluded "
            f"({some}{exclusion.text(exclusion.of_row(row))})"
        )
    return texts


def build_database(tables: Path, database: Path, project_root: Path) -> None:
    """Write the DuckDB file with one view per table, replacing it in one step. It opens read-only.

    Views name the tables relative to `project_root` when they are below it (then the file opens from there, and the
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
            generators = shown / "generators" / layout.PART
            layout.write_rows(shown, generators, list(load_generators.rows()), "generators")
            for table in TABLES:
                files, query = table_files(shown, table, None), _query(table)
                if not files:
                    empty = shown / ".empty" / f"{table}.parquet"
                    layout.write_rows(shown, empty, [], table, keep_empty=True)
                    files, query = [layout.pattern(empty)], "view_plain"
                _create_view(connection, f"VIEW {table}", query, files)
            for view in VIEWS:
                connection.execute(sql.load(view))
        temporary.replace(database)
    except UNREADABLE as error:
        raise damaged(error) from None
    except OSError as error:
        raise LoadstoneError(f"{database} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def prune_comparisons(tables: Path, comparisons: Collection[str]) -> None:
    """Remove the rows of comparisons that are no longer declared; `comparisons` are the ids of those that are."""
    found = {*(tables / layout.ANSWERS).glob("*.json")}
    kept = {layout.cache_file(tables, comparison) for comparison in comparisons}
    for table in COMPARED:
        found.update((tables / table).glob(_FILES))
        kept.update(layout.comparison_file(tables, comparison, table) for comparison in comparisons)
    for path in found - kept:
        path.unlink()


def prune(tables: Path, campaigns: Sequence[Campaign]) -> None:
    """Remove partitions and records of campaigns that the archive no longer holds. Only `tables` is touched."""
    kept_manifests = {layout.manifest_file(tables, campaign) for campaign in campaigns}
    kept = kept_manifests | {layout.cache_file(tables, campaign) for campaign in campaigns}
    for records in (layout.MANIFESTS, layout.ANSWERS):
        for path in set(tables.glob(f"{records}/*/*/*.json")) - kept:
            path.unlink()
    done = {
        tables / ".done" / manifest.relative_to(tables / layout.MANIFESTS).with_suffix("")
        for manifest in kept_manifests
    }
    for folder in set(tables.glob(".done/*/*/*")) - done:
        for record in folder.iterdir():
            record.unlink()
        folder.rmdir()
    partitions = {layout.partition(tables, "runs", campaign).parts[-3:] for campaign in campaigns}
    for pattern in (layout.PARTITIONS, layout.FORMER_PARTITIONS):
        for folder in tables.glob(f"*/{pattern}"):
            if folder.parts[-3:] not in partitions:
                _remove_partition(folder)


def _remove_partition(folder: Path) -> None:
    """Remove a folder of Parquet files except those of trace dumps, which may belong to no campaign."""
    if of_dumps := set(folder.glob(_OF_DUMPS)):  # see `prune_dumps`
        for path in set(folder.iterdir()) - of_dumps:
            path.unlink()
        return
    if folder.is_symlink():
        folder.unlink()
    else:
        for path in folder.glob(_FILES):
            path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
    for parent in list(folder.parents)[:2]:
        if not any(parent.iterdir()):
            parent.rmdir()


def _query(table: str) -> str:
    return "view_plain" if table in (*PLAIN, *SCOPED) else "view"


def table_files(tables: Path, table: str, campaigns: Sequence[Campaign] | None) -> list[str]:
    """Patterns for DuckDB, each of which matches at least one file."""
    found = [(tables / table, _FILES)] if table in (*PLAIN, *SCOPED) else []
    if table not in PLAIN:
        if campaigns is None:
            found.append((tables / table, f"{layout.PARTITIONS}/{_FILES}"))
        else:
            found += [(layout.partition(tables, table, campaign), _FILES) for campaign in campaigns]
    return [f"{layout.pattern(folder)}/{files}" for folder, files in found if any(folder.glob(files))]
