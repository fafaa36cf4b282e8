"""A figure of a cell with its error, on the scale on which campaigns are compared. For `history` and the gate.

Latencies are compared as ratios, so on the scale of their logarithms, where the interval in `cells` is Student's;
shares of errors as they are. A percentile that may be that of requests that timed out has no interval in `cells`; for
the gate its error comes from its replicates (`add_open_percentiles`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, nan, sqrt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from loadstone import sql
from loadstone.analysis.caveats.figures import DECIDING_SHARE
from loadstone.archive import Campaign
from loadstone.stats import estimable, standard_error
from loadstone.stats.bootstrap import t_factor
from loadstone.stats.shares import Share
from loadstone.tables import database, layout, schema
from loadstone.tables.schema import PERCENTILES

LATENCIES = ("p50", "p90", "p99", "mean")
ERRORS = "error_fraction"
STATISTICS = (*LATENCIES, ERRORS)
REQUESTS, REPORTS = "requests", "reports"  # what a figure rests on
OPEN_PERCENTILES = "open_percentiles"  # a cell's, by statistic

_ROUNDED = sqrt(12)  # a step divided by it is the deviation of a uniform distribution over the step


@dataclass(frozen=True)
class Figure:
    """A statistic of one cell. `value` is in ns, of ``error_fraction`` a share; `low` and `high` its interval.

    `scaled` and `error` (standard error with `freedom` degrees of freedom; not a number where it is unknown, as for a
    single run) are on the scale of comparison. `share` is set for ``error_fraction`` with an error. `at_least`: the
    figure falls among requests that timed out, and all of these are those of its lower limit.
    """

    statistic: str
    value: float
    low: float | None
    high: float | None
    n_runs: int
    scaled: float
    error: float
    share: Share | None = None
    at_least: bool = False

    @property
    def freedom(self) -> float:
        return max(self.n_runs - 1.0, 0.0)

    @property
    def is_share(self) -> bool:
        return self.statistic == ERRORS


def figure(cell: Mapping[str, Any], statistic: str, confidence: float) -> Figure | None:
    """One statistic of a row of `history_cells.sql`; None where the cell does not support it."""
    if statistic == ERRORS:
        return _errors(cell, confidence)
    if cell["evidence"] == REPORTS:
        return _reported(cell, statistic, confidence)
    value = cell[f"{statistic}_ns"]
    if value is None or value <= 0 or cell.get(f"{statistic}_estimable") is False:
        return None
    low, high, error, at_least = cell[f"{statistic}_low_ns"], cell[f"{statistic}_high_ns"], nan, False
    if low and high and cell["n_runs"] > 1:
        error = (log(high) - log(low)) / 2 / t_factor(confidence, cell["n_runs"] - 1)
    elif known := cell.get(OPEN_PERCENTILES, {}).get(statistic):
        value, error, at_least = known.value_ns, known.log_error, known.at_least
    error = max(cell["resolution_ns"] / _ROUNDED / value, error) if isfinite(error) else nan
    return Figure(statistic, value, low, high, cell["n_runs"], log(value), error, at_least=at_least)


def _reported(cell: Mapping[str, Any], statistic: str, confidence: float) -> Figure | None:
    """The mean over runs of what was reported of each, or a percentile of a single run."""
    value, runs, requests = cell[f"{statistic}_ns"], cell["n_runs"], cell["n_requests"]
    share = PERCENTILES.get(statistic)
    if value is None or value <= 0 or (share and requests is not None and not estimable(requests, share)):
        return None
    if statistic != "mean" or runs < 2 or cell["mean_log_error"] is None:
        return Figure(statistic, value, None, None, runs, log(value), nan)
    error = max(cell["mean_log_error"], cell["resolution_ns"] / _ROUNDED / value)
    reach = t_factor(confidence, runs - 1) * error
    return Figure(statistic, value, value * exp(-reach), value * exp(reach), runs, log(value), error)


def _errors(cell: Mapping[str, Any], confidence: float) -> Figure | None:
    value, runs, spread = cell[ERRORS], cell["n_runs"], cell["error_fraction_std"]
    if value is None:
        return None
    if runs < 2 or spread is None or not cell["n_requests"]:
        return Figure(ERRORS, value, None, None, runs, value, nan)
    share = Share(value, spread, runs, cell["n_requests"])
    reach = t_factor(confidence, runs - 1) * share.error
    low, high = max(0.0, value - reach), min(1.0, value + reach)
    return Figure(ERRORS, value, low, high, runs, value, share.error, share)


def failed(cell: Mapping[str, Any]) -> float | None:
    """The share of requests that failed, where it affects latencies; else None.

    Requests that timed out alone don't: they are known to have taken at least the timeout.
    """
    return cell[ERRORS] if (cell.get("other_failures") or 0.0) > DECIDING_SHARE else None


def lacks(cell: Mapping[str, Any], statistic: str) -> str:
    """Why a cell has no such figure, in words."""
    if cell["evidence"] != REPORTS:
        return "which of its requests failed is unknown" if statistic == ERRORS else "it has too few requests"
    if statistic in PERCENTILES and cell["n_runs"] > 1:
        return "its runs have reports only, and percentiles are never averaged; the mean is available"
    return "the reports of its runs lack this figure, or are of too few requests"


def unsure(cell: Mapping[str, Any], statistic: str) -> str:
    """Why the error of a figure of several runs is unknown, in words."""
    if statistic == ERRORS:
        return "the reports do not say of how many requests the shares of failures are"
    if cell.get(f"{statistic}_censored"):
        return "requests timed out, so it is unknown"
    return "it has no interval"


def change(shift: float, *, is_share: bool) -> float:
    """A difference on the scale of comparison as a reader expects it: a ratio, or a difference of shares."""
    return shift if is_share or not isfinite(shift) else exp(shift)


# --- percentiles without an interval ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenPercentile:
    """A latency, the standard error of its logarithm, and whether it is only a lower limit of the percentile."""

    value_ns: float
    log_error: float
    at_least: bool


def add_open_percentiles(
    connection: duckdb.DuckDBPyConnection, tables: Path, campaigns: Sequence[Campaign], cells: Sequence[dict[str, Any]]
) -> None:
    """Add `OPEN_PERCENTILES` to `cells`, rows of `history_cells.sql`, from the replicates that are stored.

    Where a percentile may fall among requests that timed out, `loadstone.stats.replicate` stores its lower limit.
    `connection` has a view `cells` of these campaigns; after it, a view `replicates` too.
    """
    found = connection.sql(sql.load("percentiles_without_interval")).to_arrow_table()
    keys = set(zip(*(found[name].to_pylist() for name in ("app", "host", "timestamp")), strict=True))
    if not keys:
        return
    with_open = [each for each in campaigns if tuple(layout.campaign_key(each).values()) in keys]
    database.add_view(connection, tables, "replicates", schema.REPLICATES, with_open)
    connection.register("percentiles_without_interval", found)
    by_key = {_key(cell): cell for cell in cells}
    for row in connection.sql(sql.load("percentile_replicates")).to_arrow_table().to_pylist():
        if (cell := by_key.get(_key(row))) and (known := open_percentile(row)):
            cell.setdefault(OPEN_PERCENTILES, {})[row["statistic"]] = known


def open_percentile(row: Mapping[str, Any]) -> OpenPercentile | None:
    """From a row of `percentile_replicates.sql`. None for a latency of 0, which has no logarithm."""
    draws, within = (np.asarray(row[name], np.float64) for name in ("draws", "within"))
    if row["value"] <= 0 or not (np.all(draws > 0) and np.all(within > 0)):
        return None
    error = standard_error(np.log(draws), np.log(within), row["n_runs"])
    return OpenPercentile(row["value"], error, row["kept_as"] != row["statistic"])


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name, _ in schema.CELL_KEY)
