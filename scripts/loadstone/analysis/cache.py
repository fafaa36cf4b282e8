"""A cache of rows computed from the requests of cells, so that one more run costs its own cell, not the campaign.

The key of an entry is a hash of everything that its rows depend on: queries, values and Parquet files. There is one
file per campaign and per comparison, next to the tables. It can be removed at any time and is then computed again.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from loadstone.archive.durable import replace
from loadstone.tables import database, layout

_Row = dict[str, Any]


class Cache:
    """The entries of the file at `path`; `save` keeps those that were used since."""

    def __init__(self, tables: Path, path: Path) -> None:
        self._tables = tables
        self._path = path
        self._used: dict[str, list[_Row]] = {}
        try:
            content = json.loads(self._path.read_bytes())
            self._entries: dict[str, Any] = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            self._entries = {}

    def rows(self, depends_on: object, files: Iterable[str], compute: Callable[[], Iterable[_Row]]) -> list[_Row]:
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


def _encoded(row: _Row) -> _Row:
    """As JSON: times are text, with ``@`` after their names; maps are lists of pairs already."""
    return {
        f"{name}@" if isinstance(value, datetime) else name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _decoded(row: _Row) -> _Row:
    found: _Row = {}
    for name, value in row.items():
        if name.endswith("@"):
            found[name.removesuffix("@")] = datetime.fromisoformat(value)
        elif isinstance(value, list):
            found[name] = [tuple(item) if isinstance(item, list) else item for item in value]
        else:
            found[name] = value
    return found
