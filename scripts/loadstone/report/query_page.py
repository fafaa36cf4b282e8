"""The page "Ask the tables": the reader's own SQL over the published tables, answered by DuckDB in the browser."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.report import query_data, site_files
from loadstone.report.output import about_site, asset, write_page, write_text
from loadstone.report.query_engine import Part, licenses, write_engine

NAME = "ask.html"
SHOWN = 1000  # rows of a result on the page
DOWNLOADED = 200_000  # and in the file that it gives
# Queries with their titles, in the order in which they are offered.
EXAMPLES = tuple(
    text.strip() for text in sql.load("query_examples").partition("\n\n")[2].split("\n;\n") if text.strip()
)
_ANY = "FROM runs"


def build_ask(
    campaigns: Sequence[Campaign], tables: Path, reports: Path, packages: Path | None, options: Mapping[str, Any]
) -> Path:
    """Write the page, its tables and DuckDB; returns the page's path.

    `packages` is where DuckDB for browsers was installed. Without it (None) the page says what there is to ask, and how
    to ask it elsewhere.
    """
    part = site_files.Part(reports, "ask").begin()
    held = query_data.held(tables, campaigns)
    with query_data.connect(tables, held.campaigns) as connection:
        published = query_data.write_tables(connection, reports)
        asked = examples(connection)
    parts = write_engine(packages, reports) if packages else []
    own = [reports / "assets" / name for name in ("ask.js", "ask.css")]
    for file in own:
        write_text(file, asset(file.name))
    path = reports / NAME
    context = {
        "tables": published,
        "held": held,
        "examples": asked,
        "query": asked[0]["sql"] if asked else _ANY,
        "engine": bool(parts),
        "size": megabytes(sum(part.size for part in parts) + sum(table.size for table in published)),
        "data": _script_data(published, parts),
    }
    write_page(path, "ask.html", context | about_site(options, tables))
    loaded = [*(table.file for table in published), *(file for piece in parts for file in piece.files)]
    part.finish([path, *own, *(reports / name for name in loaded), *([licenses(reports)] if parts else [])])
    return path


def examples(connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """The examples that have an answer here, each with its title, which is its first line."""
    found = []
    for text in EXAMPLES:
        try:
            answered = connection.execute(text).fetchone() is not None
        except duckdb.CatalogException:  # of a table that this site does not have
            continue
        if answered:
            found.append({"title": text.partition("\n")[0].removeprefix("-- "), "sql": text})
    return found


def megabytes(size: int) -> str:
    """How much has to be loaded, as people say it."""
    return f"{max(size / 1e6, 0.1):.1f} MB"


def _script_data(published: Sequence[query_data.Published], parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "shown": SHOWN,
        "downloaded": DOWNLOADED,
        "tables": [{"name": table.name, "file": table.file} for table in published],
        "parts": {part.name: part.files for part in parts},
    }
