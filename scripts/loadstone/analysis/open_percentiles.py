"""Percentiles of cells that have no interval, from the replicates that are kept of them: for the gate.

Where a percentile may fall among requests that timed out, `loadstone.stats.replicate` keeps what it is at least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.stats import standard_error
from loadstone.tables import database, layout, schema

_Row = dict[str, Any]

KEY = "unbounded"  # of what `add` adds to a cell: by statistic


@dataclass(frozen=True)
class Unbounded:
    """A latency, the standard error of its logarithm, and whether it is only the least that the percentile is."""

    value_ns: float
    log_error: float
    at_least: bool


def add(
    connection: duckdb.DuckDBPyConnection, tables: Path, campaigns: Sequence[Campaign], cells: Sequence[_Row]
) -> None:
    """Add to `cells`, rows of `history_cells.sql`, what is known of percentiles without an interval.

    `connection` has a view `cells` of these campaigns; after it, a view `replicates` too.
    """
    found = connection.sql(sql.load("gate_unbounded")).to_arrow_table()
    concerned = set(zip(*(found[name].to_pylist() for name in ("app", "host", "timestamp")), strict=True))
    if not concerned:
        return
    of = [each for each in campaigns if tuple(layout.campaign_key(each).values()) in concerned]
    database.add_view(connection, tables, "replicates", schema.REPLICATES, of)
    connection.register("unbounded", found)
    rows: list[_Row] = connection.sql(sql.load("gate_draws")).to_arrow_table().to_pylist()
    by_key = {_key(cell): cell for cell in cells}
    for row in rows:
        if (cell := by_key.get(_key(row))) and (known := of_draws(row)):
            cell.setdefault(KEY, {})[row["statistic"]] = known


def of_draws(row: Mapping[str, Any]) -> Unbounded | None:
    """From a row of `gate_draws.sql`. None for a latency of 0, which has no logarithm."""
    draws, within = (np.asarray(row[name], np.float64) for name in ("draws", "within"))
    if row["value"] <= 0 or not (np.all(draws > 0) and np.all(within > 0)):
        return None
    error = standard_error(np.log(draws), np.log(within), row["n_runs"])
    return Unbounded(row["value"], error, row["kept_as"] != row["statistic"])


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name, _ in schema.CELL_KEY)
