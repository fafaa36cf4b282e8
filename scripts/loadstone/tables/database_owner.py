"""Which folder of tables the database beside it shows: two of them with one parent would share it unnoticed."""

from pathlib import Path

from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError

DATABASE = "loadstone.duckdb"


def database_of(tables: Path) -> Path:
    """The database file of a folder of tables."""
    return tables.parent / DATABASE


def check(tables: Path) -> None:
    """Raise LoadstoneError when the database is that of other tables that are still there."""
    try:
        owner = _record(tables).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return
    other = tables.parent / owner
    if owner != tables.name and (other / ".done").is_dir():
        raise LoadstoneError(
            f"{database_of(tables)} shows the tables in {other}; those in {tables} need a folder of their own above "
            f"them, such as {tables.parent / tables.name / 'tables'}. If {other} is of no use any more, remove it"
        )


def claim(tables: Path) -> None:
    """Record that the database shows these tables."""
    replace(_record(tables), tables.name.encode())


def _record(tables: Path) -> Path:
    # By its name alone, so that the folder above both can be moved and copied.
    return tables.parent / f".{DATABASE}.tables"
