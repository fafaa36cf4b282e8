"""The query page: the reader's own SQL over the published tables, answered by DuckDB in the browser.

Tables and DuckDB are written as scripts, for a page that was opened from a file may load nothing else: each calls
``loadstone.receive`` with a piece of gzip-compressed, base64-encoded data.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, takewhile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.report import site_layout
from loadstone.report.output import as_json, asset, site_context, write_page, write_text
from loadstone.report.series_data import packed
from loadstone.tables import layout
from loadstone.tables.database import add_view, open_memory
from loadstone.tables.schema import ROWS
from loadstone.text import megabytes

# --- DuckDB for browsers ----------------------------------------------------------------------------------------------


# Files that ``envs/setup.sh ask`` installs, relative to its folder of packages.
_DUCKDB = "@duckdb/duckdb-wasm/dist"
_WASM = f"{_DUCKDB}/duckdb-eh.wasm"
_LIBRARY = f"{_DUCKDB}/duckdb-browser-blocking.cjs"
_ARROW = "apache-arrow/Arrow.es2015.min.js"
_LICENSES = (
    ("Apache Arrow", "apache-arrow/LICENSE.txt"),
    ("Apache Arrow, its notice", "apache-arrow/NOTICE.txt"),
    ("FlatBuffers, in Apache Arrow", "flatbuffers/LICENSE"),
    ("tslib, in Apache Arrow", "tslib/LICENSE.txt"),
)
_PIECE = 1 << 20  # characters per file, so that progress can be shown while loading

# Both libraries look for globals of a page or of Node.js; this lets them find each other.
_WORKER = """\
{offline}
(function () {{
{arrow}
}}).call(self);
const duckdb = (function (require) {{
const module = {{ exports: {{}} }}, exports = module.exports;
{library}
return module.exports;
}})((name) => (name === "apache-arrow" ? self.Arrow : {{}}));
{worker}"""


def write_engine(packages: Path, reports: Path) -> dict[str, list[str]]:
    """Write DuckDB into the site, unless it is there; the files of each of its parts, relative to the site.

    `packages` is npm's folder. Raises LoadstoneError if something is missing in it.
    """
    folder = reports / "assets" / "duckdb"
    parts, texts = _read(packages)
    digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in parts.values())).hexdigest()
    built_from = f"{asset('ask_licenses.txt')}\nMade from {digest[:32]}"
    record = licenses(reports)
    if not (record.is_file() and record.read_text("utf-8").startswith(f"{built_from}: {_names(folder)}\n")):
        record.unlink(missing_ok=True)
        for file in folder.glob("*.js"):
            file.unlink()
        for name, content in parts.items():
            for number, call in enumerate(_calls(name, content)):
                write_text(folder / f"{name}-{number:02}.js", call)
        write_text(record, f"{built_from}: {_names(folder)}\n{texts}")
    return {
        name: [file.relative_to(reports).as_posix() for file in sorted(folder.glob(f"{name}-*.js"))] for name in parts
    }


def licenses(reports: Path) -> Path:
    """The licenses of DuckDB and its libraries, with a digest of the files that it was written from."""
    return reports / "assets" / "duckdb" / "LICENSES.txt"


def _calls(name: str, content: bytes) -> Iterator[str]:
    """The script that hands over `content`, compressed and encoded: a call for each piece of bounded size."""
    text = packed(content)
    for number, start in enumerate(range(0, len(text), _PIECE)):
        yield f"loadstone.receive({as_json(name)},{number},{as_json(text[start : start + _PIECE])});\n"


def _names(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.glob("*.js")))


def _read(packages: Path) -> tuple[dict[str, bytes], str]:
    """What the browser loads, by name, and its licenses."""
    try:
        worker = _WORKER.format(
            offline=asset("ask_offline.js"),
            arrow=(packages / _ARROW).read_text("utf-8"),
            library=(packages / _LIBRARY).read_text("utf-8"),
            worker=asset("ask_worker.js"),
        )
        texts = (
            f"\n{'=' * 80}\n{name}\n{'=' * 80}\n\n{(packages / path).read_text('utf-8')}" for name, path in _LICENSES
        )
        return {"worker": worker.encode(), "module": (packages / _WASM).read_bytes()}, "".join(texts)
    except OSError as error:
        raise LoadstoneError(
            f"DuckDB for browsers in {packages} is incomplete ({error}): make ask installs it again"
        ) from None


# --- tables -----------------------------------------------------------------------------------------------------------


# The tables that can be queried in the browser. Tables of requests, samples, spans and figures printed by tools are too
# large to be published.
PUBLISHED = (
    *("runs", "cells", "cells_all", "comparisons", "effects", "knees", "knee_shares", "layers", "interactions"),
    *("run_shapes", "sending", "senders", "time_bins", "error_causes", "history", "claims", "fits", "summaries"),
    *("planned", "failures", "suggestions", "problems", "incidents", "generators"),
)
MOST_RUNS = 50_000  # of the newest campaigns


@dataclass(frozen=True)
class Published:
    """One table of the site: what a row of it is, its columns with their types, and how many rows it has."""

    name: str
    row: str
    columns: list[tuple[str, str]]
    rows: int

    @property
    def file(self) -> str:
        """Its file, relative to the site."""
        return f"ask/{self.name}.js"


def newest_campaigns(tables: Path, campaigns: Sequence[Campaign]) -> list[Campaign]:
    """The newest of `campaigns` with at most `MOST_RUNS` runs in total, but at least one campaign."""
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    totals = accumulate(_runs(tables, campaign) for campaign in newest_first)
    within = list(takewhile(lambda total: total <= MOST_RUNS, totals))
    return newest_first[: max(1, len(within))]


def connect(tables: Path, campaigns: Sequence[Campaign]) -> duckdb.DuckDBPyConnection:
    """The published tables in memory, as in the browser; `campaigns` are those of `newest_campaigns`."""
    connection = duckdb.connect()
    with open_memory() as source:
        for name in PUBLISHED:
            add_view(source, tables, name, campaigns)
            rows = source.sql(sql.load("table_rows"), params={"name": name}).to_arrow_table()
            connection.from_arrow(_without_zones(rows)).create(name)
    return connection


def write_tables(connection: duckdb.DuckDBPyConnection, reports: Path) -> list[Published]:
    """Write every table of `connect` into the site; files of tables that are no longer published are removed."""
    published = [_write(connection, name, reports) for name in PUBLISHED]
    wanted = {reports / table.file for table in published}
    for file in (reports / "ask").glob("*.js"):
        if file not in wanted and file.read_text("utf-8", "replace").startswith("loadstone.receive("):
            file.unlink()
    return published


def _write(connection: duckdb.DuckDBPyConnection, name: str, reports: Path) -> Published:
    rows = connection.table(name).to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    columns = [(row[0], row[1]) for row in connection.execute(sql.load("table_columns"), {"name": name}).fetchall()]
    table = Published(name, ROWS[name], columns, rows.num_rows)
    write_text(reports / table.file, "".join(_calls(name, sink.getvalue().to_pybytes())))
    return table


def _without_zones(rows: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _runs(tables: Path, campaign: Campaign) -> int:
    files = layout.partition(tables, "runs", campaign).glob("*.parquet")
    return sum(pq.read_metadata(file).num_rows for file in files)


# --- the page ---------------------------------------------------------------------------------------------------------


SHOWN = 1000  # rows of a result on the page
DOWNLOADED = 200_000  # and in the downloaded file
# Queries with their titles, in the order in which they are offered.
EXAMPLES = tuple(
    text.strip() for text in sql.load("query_examples").partition("\n\n")[2].split("\n;\n") if text.strip()
)


def build_query_page(
    campaigns: Sequence[Campaign], tables: Path, reports: Path, packages: Path | None, options: Mapping[str, Any]
) -> Path:
    """Write the page, its tables and DuckDB; returns the page's path.

    `packages` is where DuckDB for browsers was installed. Without it (None) the page lists the tables and shows how to
    query them elsewhere.
    """
    part = site_layout.Part(reports, "ask").begin()
    newest = newest_campaigns(tables, campaigns)
    with connect(tables, newest) as connection:
        published = write_tables(connection, reports)
        offered = examples(connection)
    parts = write_engine(packages, reports) if packages else {}
    loaded = [reports / file for file in (*(table.file for table in published), *chain(*parts.values()))]
    own = [reports / "assets" / name for name in ("ask.js", "ask.css")]
    for file in own:
        write_text(file, asset(file.name))
    path = reports / "ask.html"
    context = {
        "tables": published,
        "n_published": len(newest),
        "n_campaigns": len(campaigns),
        "examples": offered,
        "query": offered[0]["sql"] if offered else "FROM runs",
        "engine": bool(parts),
        "size": megabytes(max(sum(file.stat().st_size for file in loaded), 100_000)),
        "data": {
            "shown": SHOWN,
            "downloaded": DOWNLOADED,
            "tables": [{"name": table.name, "file": table.file} for table in published],
            "parts": parts,
        },
    }
    write_page(path, "ask.html", context | site_context(options, tables))
    part.finish([path, *own, *loaded, *([licenses(reports)] if parts else [])])
    return path


def examples(connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """The examples that give rows here, each with its title, which is its first line."""
    found = []
    for text in EXAMPLES:
        with suppress(duckdb.CatalogException):  # it needs a table that this site does not have
            if connection.execute(text).fetchone() is not None:
                found.append({"title": text.partition("\n")[0].removeprefix("-- "), "sql": text})
    return found
