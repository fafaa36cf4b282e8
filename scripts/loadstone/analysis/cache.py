"""Answers of an earlier analysis that are still true, so that one run more costs its own cell and not the campaign.

An answer is a list of rows computed from Parquet files of one cell; it is known by a hash over all that it was computed
from. Kept beside the tables, per campaign and per comparison; removing them costs time and changes nothing.
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


class Answers:
    """What the file at `path` knows; `save` keeps those that were asked for since."""

    def __init__(self, tables: Path, path: Path) -> None:
        self._tables = tables
        self._path = path
        self._asked: dict[str, list[_Row]] = {}
        try:
            content = json.loads(self._path.read_bytes())
            self._known: dict[str, Any] = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            self._known = {}

    def rows(self, question: object, files: Iterable[str], compute: Callable[[], Iterable[_Row]]) -> list[_Row]:
        """What `compute` gives, or gave when it was last asked.

        `question` holds the text of the queries and every value besides `files`, which are relative to the tables'
        folder and told apart by size and mtime (they are only ever replaced as a whole).
        """
        stated = []
        for file in sorted(files):
            status = (self._tables / file).stat()
            stated.append((file, status.st_size, status.st_mtime_ns))
        key = hashlib.sha256(repr((question, stated)).encode("utf-8", "backslashreplace")).hexdigest()[:32]
        if key in self._known:
            self._asked[key] = self._known[key]
            return [_decoded(row) for row in self._known[key]]
        try:
            found = list(compute())
        except (duckdb.InvalidInputException, duckdb.IOException, duckdb.SerializationException) as error:
            raise database.damaged(error) from None
        self._asked[key] = [_encoded(row) for row in found]
        return found

    def save(self) -> None:
        """Write down what was asked for; the rest is no longer true of anything."""
        layout.prepare_folder(self._tables, self._path.parent)
        replace(self._path, json.dumps(self._asked, separators=(",", ":")).encode())


def _encoded(row: _Row) -> _Row:
    """Times as text under a name that says so; maps are lists of pairs already."""
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
