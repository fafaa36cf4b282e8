"""The same cell in all campaigns of the archive, in the order of their start: table `history`. Reads no request.

Figures are those of `cells`; of cells without any request known they are what tools reported of each run, as series of
their own. A series goes on as long as it is measured in one way: the same load model, tools whose latencies mean the
same, sent by the same program over as many connections, as many replicas. What differs otherwise from the campaign
before is named in `differs`, as it may be the reason of a change. Where a level ends and another begins is found by
`loadstone.stats.history`.

The job that also writes the database computes it, from `cells` and `runs` alone: it runs whenever any of them changes,
so that a new campaign costs itself and one look at all cells. `summaries` are read only for campaigns that have a cell
without requests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from loadstone import sql
from loadstone.analysis.cell_figures import ERRORS, REPORTS, STATISTICS, Figure, figure
from loadstone.analysis.scope import way
from loadstone.archive import Campaign, parse_timestamp
from loadstone.stats import history
from loadstone.stats.history import Series
from loadstone.tables import database, layout, schema

_Row = dict[str, Any]
Notes = Mapping[tuple[str, str, str], str]

NAME = "history"
_LEAST_ERRORS = 0.01  # smaller steps of the share of errors are ignored
_SERIES = ("app", "host", "variant", "rate")
_NAMED = {
    "load_model": "load model",
    "generator": "generator",
    "sent_by": "sent by",
    "replicas": "replicas",
    "duration_s": "duration in s",
    "warmup_rate": "warm-up rate",
}


def write(
    campaigns: Sequence[Campaign], tables: Path, notes: Notes, *, margin: float = 0.05, confidence: float = 0.95
) -> None:
    """Write table `history` over these campaigns. `notes` are annotations of campaigns, by app, host, timestamp.

    Steps of latencies below `margin` (a share) are ignored. Raises LoadstoneError when `tables` can't be written.
    """
    with database.open_memory() as connection:
        cells = measured(connection, tables, campaigns)
    rows = [row for group in series(cells) for row in _rows(group, notes, margin, confidence)]
    layout.write_rows(tables, file_of(tables), rows, schema.TABLES[NAME], keep_empty=True)


def file_of(tables: Path) -> Path:
    """The file of the table."""
    return tables / NAME / layout.PART


def measured(connection: duckdb.DuckDBPyConnection, tables: Path, campaigns: Sequence[Campaign]) -> list[_Row]:
    """`history_cells.sql`, each with `started_at`, its `way`, and how it `differs` from the campaign before it.

    Runs that were sent late are among the latter. `connection` is empty before; after it, it has views of `runs`,
    `cells` and `sending`.
    """
    for table in ("runs", "cells", "sending"):
        database.add_view(connection, tables, table, schema.TABLES[table], campaigns)
    # Most campaigns have all requests: their reports are not needed.
    without_cells = set(connection.sql(sql.load("campaigns_without_cells")).fetchall())
    reported = [each for each in campaigns if tuple(layout.campaign_key(each).values()) in without_cells]
    database.add_view(connection, tables, "summaries", schema.TABLES["summaries"], reported)
    cells: list[_Row] = connection.sql(sql.load("history_cells")).to_arrow_table().to_pylist()
    for cell in cells:
        cell["started_at"] = parse_timestamp(cell["timestamp"])
        cell["way"] = way_text(cell)
    cells.sort(key=_order)
    for _, group in groupby(cells, key=lambda cell: [cell[name] for name in _SERIES]):
        before: _Row | None = None
        for cell in group:
            cell["differs"] = [] if before is None else list(_differences(before, cell))
            if cell["n_late"]:
                cell["differs"].append(f"{cell['n_late']} of {cell['n_runs']} runs were sent late")
            before = cell
    return cells


def series(cells: Iterable[_Row]) -> Iterator[list[_Row]]:
    """The cells of one variant at one rate that were measured in one way, in the order of their start."""

    def key(cell: _Row) -> tuple[Any, ...]:
        return (
            *(cell[name] for name in (*_SERIES, "evidence")),
            *map(str, way(cell)),
            cell["sent_by"],
            cell["replicas"] or "",
        )

    for _, group in groupby(sorted(cells, key=key), key=key):
        yield list(group)


def way_text(cell: Mapping[str, Any]) -> str:
    """How a cell was measured, in words."""
    number = cell["replicas"]
    replicas = f", {number} replica{'' if str(number) == '1' else 's'}" if number else ""
    reported = ", as reported" if cell["evidence"] == REPORTS else ""
    return f"{cell['load_model']} load by {cell['sent_by']}{replicas}{reported}"


def _order(cell: _Row) -> tuple[Any, ...]:
    started: datetime | None = cell["started_at"]
    # A folder whose name is no timestamp comes last: when it was measured is unknown.
    moment = (1, 0.0) if started is None else (0, started.timestamp())
    return *(cell[name] for name in _SERIES), moment, cell["timestamp"]


def _differences(before: _Row, cell: _Row) -> Iterator[str]:
    for name, words in _NAMED.items():
        is_named = name == "sent_by" and before["generator"] != cell["generator"]
        if before[name] != cell[name] and not is_named:
            yield f"{words}: {_or_none(before[name])} before, {_or_none(cell[name])} here"
    labels = dict(before["labels"] or ()), dict(cell["labels"] or ())
    for name in sorted(labels[0].keys() | labels[1].keys()):
        old, new = (each.get(name) for each in labels)
        if old != new:
            yield f"label {name}: {_or_none(old)} before, {_or_none(new)} here"


def _or_none(value: str | None) -> str:
    return value or "none"


def _rows(group: Sequence[_Row], notes: Notes, margin: float, confidence: float) -> Iterator[_Row]:
    for statistic in STATISTICS:
        figures = [(cell, found) for cell in group if (found := figure(cell, statistic, confidence)) is not None]
        if not figures:
            continue
        numbers = history.levels(as_series([found for _, found in figures]), least_step(statistic, margin))
        before = 1
        for (cell, found), number in zip(figures, numbers.tolist(), strict=True):
            key = {name: cell[name] for name in (*_SERIES, "timestamp", "started_at", "way", "evidence", "differs")}
            yield key | {
                "statistic": statistic,
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "at_least": bool(cell.get(f"{statistic}_censored")),
                "n_runs": found.n_runs,
                "level": number,
                "change": number != before,
                "resolution_ns": cell["resolution_ns"] or None,
                "note": notes.get((cell["app"], cell["host"], cell["timestamp"])),
            }
            before = number


def least_step(statistic: str, margin: float) -> float:
    """The smallest step between levels, on the scale of comparison."""
    return _LEAST_ERRORS if statistic == ERRORS else float(np.log1p(margin))


def as_series(figures: Sequence[Figure]) -> Series:
    """Figures of one statistic as arrays."""
    columns = ([getattr(each, name) for each in figures] for name in ("scaled", "error", "freedom"))
    return Series(*(np.array(column, float) for column in columns))
