"""The requests that queries read: those of selected runs, in the Parquet files of their cells.

``sql/measured_requests.sql`` says what a measured request is and what it took; queries of tables read its macros. A
`Cache` keeps what was computed from the requests of cells, so that one more run costs its own cell, not the campaign.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.analysis import Row, by_key
from loadstone.archive.durable import replace
from loadstone.tables import database, layout

_KEY = ("app", "host", "timestamp", "variant", "rate", "run", "variant_dir")
_SELECTED = pa.schema(
    [
        ("series", pa.int32()),
        *((name, pa.string()) for name in ("host", "timestamp", "variant_dir")),
        ("rate", pa.float64()),
        ("run", pa.int32()),
        *((name, pa.float64()) for name in ("timeout_s", "clock_set_back_s")),
        ("excluded", pa.bool_()),
    ]
)

# What every figure of requests depends on, other than its own query.
CODE = sql.load("measured_requests")


class Cache:
    """Rows computed from the requests of cells: the entries of the file at `path`; `save` keeps those that were used.

    The key of an entry is a hash of everything that its rows depend on: queries, values and Parquet files. There is one
    file per campaign and per comparison, next to the tables. It can be removed at any time and is then computed again.
    """

    def __init__(self, tables: Path, path: Path) -> None:
        self._tables = tables
        self._path = path
        self._used: dict[str, list[Row]] = {}
        try:
            content = json.loads(self._path.read_bytes())
            self._entries: dict[str, Any] = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            self._entries = {}

    def rows(self, depends_on: object, files: Iterable[str], compute: Callable[[], Iterable[Row]]) -> list[Row]:
        """The rows that `compute` returns, from the cache if possible.

        `depends_on` has the text of the queries and all values. `files` are relative to the tables' folder and
        identified by size and mtime, since they are always replaced as a whole.
        """
        versions = []
        for file in sorted(files):
            status = (self._tables / file).stat()
            versions.append((file, status.st_size, status.st_mtime_ns))
        key = hashlib.sha256(repr((depends_on, versions)).encode("utf-8", "backslashreplace")).hexdigest()[:32]
        if key in self._entries:
            self._used[key] = self._entries[key]
            return [_decoded(row) for row in self._entries[key]]
        try:
            found = list(compute())
        except (duckdb.InvalidInputException, duckdb.IOException, duckdb.SerializationException) as error:
            raise database.damaged(error) from None
        self._used[key] = [_encoded(row) for row in found]
        return found

    def save(self) -> None:
        """Write the entries that were used; all others are outdated."""
        layout.prepare_folder(self._tables, self._path.parent)
        replace(self._path, json.dumps(self._used, separators=(",", ":")).encode())


def _encoded(row: Row) -> Row:
    """As JSON: times are text, with ``@`` after their names; maps are lists of pairs already."""
    return {
        f"{name}@" if isinstance(value, datetime) else name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _decoded(row: Row) -> Row:
    found: Row = {}
    for name, value in row.items():
        if name.endswith("@"):
            found[name.removesuffix("@")] = datetime.fromisoformat(value)
        elif isinstance(value, list):
            found[name] = [tuple(item) if isinstance(item, list) else item for item in value]
        else:
            found[name] = value
    return found


@dataclass(frozen=True)
class Source:
    """A connection to the requests below `tables`, with a cache of what was computed from them."""

    connection: duckdb.DuckDBPyConnection
    tables: Path
    cache: Cache

    def of_cell(self, query: str, file: str, runs: Sequence[Row], *, also: object = None, **values: Any) -> list[Row]:
        """The rows of ``sql/<query>.sql`` over the requests of a cell's `runs`, which are in `file`.

        `values` are bound to the query's parameters other than `$files`; `also` is what else the rows depend on.
        """

        def compute() -> list[Row]:
            select(self.connection, runs)
            files = [layout.pattern(self.tables / file)]
            return database.rows(self.connection, sql.load(query), files=files, **values)

        return self.cache.rows((sql.load(query), identity(runs), also, values), [file], compute)


def select(connection: duckdb.DuckDBPyConnection, runs: Sequence[Row]) -> None:
    """Select the runs whose requests queries of the connection read; `series` is the position of each in `runs`.

    A run without these columns is not excluded, and its clock was not set back.
    """
    rows = [{"clock_set_back_s": None, "excluded": False} | run | {"series": n} for n, run in enumerate(runs)]
    columns = {name: [row[name] for row in rows] for name in _SELECTED.names}
    connection.register("selected_runs", pa.table(columns, schema=_SELECTED))


def identity(runs: Sequence[Row]) -> tuple[Any, ...]:
    """What measured requests of these runs depend on, other than their files."""
    names = [name for name in _SELECTED.names if name != "series"]
    return CODE, [tuple(run.get(name) for name in names) for run in runs]


def key(fact: Mapping[str, Any]) -> Row:
    """The columns that identify a run."""
    return {name: fact[name] for name in _KEY}


def by_file(facts: Sequence[Row]) -> dict[str, list[Row]]:
    """The runs with requests, by the file of these, which is that of a cell."""
    return by_key([fact for fact in facts if fact["requests_file"]], itemgetter("requests_file"))


def by_run(facts: Sequence[Row], of_cell: Callable[[str, list[Row]], Iterable[Row]]) -> list[list[Row]]:
    """The rows of each of the runs `facts`; `of_cell(file, runs)` returns those of the runs with requests in a file."""
    found = defaultdict(list)
    for file, runs in by_file(facts).items():
        for row in of_cell(file, runs):
            found[file, row["run"]].append(row)
    return [found[fact["requests_file"], fact["run"]] for fact in facts]
