"""The single requests of runs, cell by cell, for what is found out about each run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from loadstone.analysis.cache import Answers

_Row = dict[str, Any]

_KEY = ("app", "host", "timestamp", "variant", "rate", "run", "variant_dir")


@dataclass(frozen=True)
class Source:
    """Where requests come from, and what was computed from them before."""

    connection: duckdb.DuckDBPyConnection
    tables: Path
    answers: Answers


def key(fact: Mapping[str, Any]) -> _Row:
    """The columns that name a run."""
    return {name: fact[name] for name in _KEY}


def by_file(facts: Sequence[_Row]) -> Iterator[tuple[str, list[_Row]]]:
    """The runs whose requests lie in each file, which is one of a cell; not those without requests."""
    found: dict[str, list[_Row]] = {}
    for fact in facts:
        if fact["requests_file"]:
            found.setdefault(fact["requests_file"], []).append(fact)
    yield from found.items()
