"""The query page: the reader's own SQL over the published tables, answered by DuckDB in the browser.

Tables and DuckDB are written as scripts, for a page that was opened from a file may load nothing else: each calls
``loadstone.receive`` with a piece of gzip-compressed, base64-encoded data.
"""

import base64
import gzip
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.report import site_layout
from loadstone.report.output import about_site, as_json, asset, write_page, write_text
from loadstone.tables import layout
from loadstone.tables.database import add_view, open_memory
from loadstone.tables.schema import ROWS

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


@dataclass(frozen=True)
class EnginePart:
    """One part of the engine: its files, relative to the site, and their total size in bytes."""

    name: str
    files: list[str]
    size: int


def write_engine(packages: Path, reports: Path) -> list[EnginePart]:
    """Write DuckDB into the site, unless it is there. `packages` is npm's folder. LoadstoneError if it is missing."""
    folder = reports / "assets" / "duckdb"
    sources, texts = _read(packages)
    made_of = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in sources.values())).hexdigest()
    made_from = f"{asset('ask_licenses.txt')}\nMade from {made_of[:32]}"
    record = licenses(reports)
    if not (record.is_file() and record.read_text("utf-8").startswith(f"{made_from}: {_names(folder)}\n")):
        record.unlink(missing_ok=True)
        for file in folder.glob("*.js"):
            file.unlink()
        for name, content in sources.items():
            for number, piece in enumerate(pieces(content)):
                text = f"loadstone.receive({as_json(name)},{number},{as_json(piece)});\n"
                write_text(folder / f"{name}-{number:02}.js", text)
        write_text(record, f"{made_from}: {_names(folder)}\n{texts}")
    return [_engine_part(folder, name) for name in sources]


def licenses(reports: Path) -> Path:
    """The licenses of DuckDB and what is in it, with what it was made from."""
    return reports / "assets" / "duckdb" / "LICENSES.txt"


def pieces(content: bytes) -> Iterator[str]:
    """Compressed and encoded, in pieces of bounded size; the same bytes give the same text."""
    # Level 9 takes twice the time for 1 % less.
    text = base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _names(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.glob("*.js")))


def _read(packages: Path) -> tuple[dict[str, bytes], str]:
    """What the browser loads, by name, and the licenses of it."""
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


def _engine_part(folder: Path, name: str) -> EnginePart:
    files = sorted(folder.glob(f"{name}-*.js"))
    return EnginePart(
        name, [f"assets/duckdb/{file.name}" for file in files], sum(file.stat().st_size for file in files)
    )


# --- tables -----------------------------------------------------------------------------------------------------------


# The tables that can be queried in the browser. Tables of requests, samples, spans and figures printed by tools are too
# large to be published.
ASKED = (
    *("runs", "cells", "cells_all", "comparisons", "effects", "knees", "knee_shares", "layers", "interactions"),
    *("run_shapes", "sending", "senders", "time_bins", "error_causes", "history", "claims", "fits", "summaries"),
    *("planned", "failures", "suggestions", "problems", "incidents", "generators"),
)
MOST_RUNS = 50_000  # of the newest campaigns


@dataclass(frozen=True)
class Published:
    """One table of the site: what a row of it is, its file relative to the site, and how many bytes that has."""

    name: str
    row: str
    columns: list[tuple[str, str]]
    rows: int
    file: str
    size: int


@dataclass(frozen=True)
class Held:
    """The campaigns of the published tables, the newest within `MOST_RUNS`, and how many there are in total."""

    campaigns: list[Campaign]
    of: int


def newest_campaigns(tables: Path, campaigns: Sequence[Campaign]) -> Held:
    """The newest of `campaigns` with at most `MOST_RUNS` runs in total, but at least one."""
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    chosen: list[Campaign] = []
    runs = 0
    for campaign in newest_first:
        runs += _runs(tables, campaign)
        if chosen and runs > MOST_RUNS:
            break
        chosen.append(campaign)
    return Held(chosen, len(newest_first))


def connect(tables: Path, campaigns: Sequence[Campaign]) -> duckdb.DuckDBPyConnection:
    """The published tables in memory, as in the browser; `campaigns` are those of `newest_campaigns`."""
    connection = open_memory()
    with open_memory() as source:  # one for all: opening one takes longer than reading a small table
        for name in ASKED:
            add_view(source, tables, name, campaigns)
            rows = source.sql(sql.load("table_rows"), params={"name": name}).to_arrow_table()
            connection.from_arrow(_without_zones(rows)).create(name)
    return connection


def write_tables(connection: duckdb.DuckDBPyConnection, reports: Path) -> list[Published]:
    """Write every table of `connect` into the site; files of tables that are no longer published are removed."""
    published = [_write(connection, name, reports) for name in ASKED]
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
    path = reports / "ask" / f"{name}.js"
    calls = (
        f"loadstone.receive({as_json(name)},{number},{as_json(piece)});\n"
        for number, piece in enumerate(pieces(sink.getvalue().to_pybytes()))
    )
    write_text(path, "".join(calls))
    columns = [(row[0], row[1]) for row in connection.execute(sql.load("table_columns"), {"name": name}).fetchall()]
    return Published(name, ROWS[name], columns, rows.num_rows, f"ask/{name}.js", path.stat().st_size)


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


NAME = "ask.html"
SHOWN = 1000  # rows of a result on the page
DOWNLOADED = 200_000  # and in the downloaded file
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
    part = site_layout.Part(reports, "ask").begin()
    held = newest_campaigns(tables, campaigns)
    with connect(tables, held.campaigns) as connection:
        published = write_tables(connection, reports)
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
    """The examples that can be run here, each with its title, which is its first line."""
    found = []
    for text in EXAMPLES:
        try:
            answered = connection.execute(text).fetchone() is not None
        except duckdb.CatalogException:  # it needs a table that this site does not have
            continue
        if answered:
            found.append({"title": text.partition("\n")[0].removeprefix("-- "), "sql": text})
    return found


def megabytes(size: int) -> str:
    """The size of what has to be loaded, for people."""
    return f"{max(size / 1e6, 0.1):.1f} MB"


def _script_data(published: Sequence[Published], parts: Sequence[EnginePart]) -> dict[str, Any]:
    return {
        "shown": SHOWN,
        "downloaded": DOWNLOADED,
        "tables": [{"name": table.name, "file": table.file} for table in published],
        "parts": {part.name: part.files for part in parts},
    }
