"""Each cell in all campaigns of the archive, in the order of their start: table `history`. Reads no request.

The error of a figure is on the scale on which campaigns are compared, here and by the gate. Latencies are compared as
ratios, so on the scale of their logarithms, on which the interval in `cells` is Student's; error fractions as they are.
A percentile that may fall among requests that timed out has no interval in `cells`; for the gate its error comes from
its replicates (`add_open_percentiles`).

Figures are those of `cells`. Cells without requests have the figures that tools reported, in series of their own. All
campaigns of a series measured in one way: the same load model, tools whose latencies mean the same, the same program,
connections and replicas (`runs.sent_alike`). Other differences from the previous campaign are listed in `differs`,
since they may explain a change. `loadstone.stats.history` finds where the level changes.

The job that writes the database computes the table from `cells` and `runs` alone, whenever any of them changes: a new
campaign costs its own analysis and one pass over all cells. `summaries` are read only for campaigns that have a cell
without requests.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from math import exp, isfinite, log, nan, sqrt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from loadstone import sql
from loadstone.analysis import Row
from loadstone.analysis.caveats.figures import DECIDING_SHARE
from loadstone.analysis.scope import way
from loadstone.archive import Campaign, parse_timestamp
from loadstone.percentiles import ERRORS, PERCENTILES, SHOWN_PERCENTILES, STATISTICS
from loadstone.stats import estimable, history, standard_error
from loadstone.stats.bootstrap import t_factor
from loadstone.stats.history import Series
from loadstone.stats.shares import Share
from loadstone.tables import database, layout, schema
from loadstone.text import rate_text

REQUESTS, REPORTS = "requests", "reports"  # what a figure is computed from
OPEN_PERCENTILES = "open_percentiles"  # a cell's, by statistic

_ROUNDED = sqrt(12)  # a step divided by it is the deviation of a uniform distribution over the step


@dataclass(frozen=True)
class Figure:
    """A statistic of one cell. `value` is in ns, of ``error_fraction`` a share; `low` and `high` are its interval.

    `scaled` and `error` are on the scale of comparison. The latter is the standard error with `freedom` degrees of
    freedom, nan where it is unknown, as for a single run. `share` is set for ``error_fraction`` with an error.
    `at_least`: the figure falls among requests that timed out, and all values are those of its lower limit.
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
    """The mean over runs of reported means, or a percentile of a single run."""
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
    """The share of requests that failed, if it affects latencies; else None.

    Timeouts alone don't, since such requests are known to have taken at least the timeout.
    """
    return cell[ERRORS] if (cell.get("other_failures") or 0.0) > DECIDING_SHARE else None


def lacks(cell: Mapping[str, Any], statistic: str) -> str:
    """Says why a cell has no such figure."""
    if cell["evidence"] != REPORTS:
        return "which of its requests failed is unknown" if statistic == ERRORS else "it has too few requests"
    if statistic in PERCENTILES and cell["n_runs"] > 1:
        return "its runs have reports only, and percentiles are never averaged; the mean is available"
    return "the reports of its runs lack this figure, or are of too few requests"


def unsure(cell: Mapping[str, Any], statistic: str) -> str:
    """Says why the error of a figure of several runs is unknown."""
    if statistic == ERRORS:
        return "the reports do not say how many requests the error fractions are based on"
    if cell.get(f"{statistic}_censored"):
        return "requests timed out, so it is unknown"
    return "it has no interval"


def change(shift: float, *, is_share: bool) -> float:
    """A difference on the scale of comparison as shown to readers: a ratio, or a difference of shares."""
    return shift if is_share or not isfinite(shift) else exp(shift)


# --- percentiles without an interval ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenPercentile:
    """A latency, the standard error of its logarithm, and whether it is only the lower limit of the percentile."""

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
    values = {"percentiles": list(SHOWN_PERCENTILES)}
    found = connection.sql(sql.load("percentiles_without_interval"), params=values).to_arrow_table()
    keys = set(zip(*(found[name].to_pylist() for name in ("app", "host", "timestamp")), strict=True))
    if not keys:
        return
    database.add_view(connection, tables, "replicates", _of(campaigns, keys))
    connection.register("percentiles_without_interval", found)
    by_key = {_key(cell): cell for cell in cells}
    for row in database.rows(connection, sql.load("percentile_replicates")):
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
    return tuple(row[name] for name in schema.CELL_KEY)


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
    """Write table `history` over these campaigns. `notes` are annotations of campaigns by app, host and timestamp.

    Steps of latencies below `margin` (a share) are ignored. Raises LoadstoneError when `tables` can't be written.
    """
    with database.open_memory() as connection:
        cells = measured(connection, tables, campaigns)
    rows = [row for group in series(cells) for row in _rows(group, notes, margin, confidence)]
    layout.write_rows(tables, tables / NAME / layout.PART, rows, NAME, keep_empty=True)


def measured(connection: duckdb.DuckDBPyConnection, tables: Path, campaigns: Sequence[Campaign]) -> list[Row]:
    """Rows of `history_cells.sql` with `started_at`, `way`, and what `differs` from the previous campaign.

    The latter includes runs that were sent late. Adds views of `runs`, `cells`, `sending` and `summaries` to
    `connection`.
    """
    for table in ("runs", "cells", "sending"):
        database.add_view(connection, tables, table, campaigns)
    # Most campaigns have all requests: their reports are not needed.
    without_cells = connection.sql(sql.load("campaigns_without_cells")).fetchall()
    database.add_view(connection, tables, "summaries", _of(campaigns, set(without_cells)))
    cells = database.rows(connection, sql.load("history_cells"))
    known: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for cell in cells:
        known[tuple(cell[name] for name in _SERIES)] |= {cell["protocol"]} - {""}
    for cell in cells:
        if len(known[tuple(cell[name] for name in _SERIES)]) < 2:  # unknown protocols of older runs are no others
            cell["protocol"] = ""
        cell["started_at"] = parse_timestamp(cell["timestamp"])
        cell["way"] = way_text(cell)
    cells.sort(key=_order)
    for _, group in groupby(cells, key=lambda cell: [cell[name] for name in _SERIES]):
        before: Row | None = None
        for cell in group:
            cell["differs"] = [] if before is None else list(_differences(before, cell))
            if cell["n_late"]:
                cell["differs"].append(f"{cell['n_late']} of {cell['n_runs']} runs were sent late")
            before = cell
    return cells


def _of(campaigns: Sequence[Campaign], keys: Collection[tuple[Any, ...]]) -> list[Campaign]:
    """Those of the campaigns whose app, host and timestamp are among `keys`."""
    return [each for each in campaigns if tuple(layout.campaign_key(each).values()) in keys]


def series(cells: Iterable[Row]) -> Iterator[list[Row]]:
    """The cells of one variant at one rate that were measured in one way, in the order of their start."""

    def key(cell: Row) -> tuple[Any, ...]:
        of_series = (cell[name] for name in (*_SERIES, "evidence", "sent_alike", "protocol"))
        return *of_series, *map(str, way(cell)), cell["replicas"] or ""

    for _, group in groupby(sorted(cells, key=key), key=key):
        yield list(group)


def settings(cell: Mapping[str, Any]) -> dict[str, str]:
    """What tells the series of a cell from others, as text by name."""
    found = {"host": cell["host"], "variant": cell["variant"], "rate": rate_text(cell["rate"])}
    found |= {_NAMED[name]: cell[name] or "unknown" for name in ("load_model", "generator", "replicas")}
    found |= {"sent by": cell["sent_alike"] or "unknown", "protocol": cell["protocol"] or "unknown"}
    return found | {"figures from": cell["evidence"]}


def way_text(cell: Mapping[str, Any]) -> str:
    """Says how a cell was measured."""
    number = cell["replicas"]
    replicas = f", {number} replica{'' if str(number) == '1' else 's'}" if number else ""
    reported = ", as reported" if cell["evidence"] == REPORTS else ""
    protocol = f", {cell['protocol']}" if cell["protocol"] else ""
    generator = cell["generator"]
    sent = cell["sent_alike"] or generator
    by = sent if sent.startswith(generator) else f"{generator} ({sent})"
    return f"{cell['load_model']} load by {by}{protocol}{replicas}{reported}"


def _order(cell: Row) -> tuple[Any, ...]:
    started: datetime | None = cell["started_at"]
    # A folder whose name is no timestamp comes last: when it was measured is unknown.
    moment = (1, 0.0) if started is None else (0, started.timestamp())
    return *(cell[name] for name in _SERIES), moment, cell["timestamp"]


def _differences(before: Row, cell: Row) -> Iterator[str]:
    for name, words in _NAMED.items():
        is_named = name == "sent_by" and before["generator"] != cell["generator"]
        if before[name] != cell[name] and not is_named:
            yield f"{words}: {before[name] or 'none'} before, {cell[name] or 'none'} here"
    labels = dict(before["labels"] or ()), dict(cell["labels"] or ())
    for name in sorted(labels[0].keys() | labels[1].keys()):
        old, new = (each.get(name) for each in labels)
        if old != new:
            yield f"label {name}: {old or 'none'} before, {new or 'none'} here"


def _rows(group: Sequence[Row], notes: Notes, margin: float, confidence: float) -> Iterator[Row]:
    for statistic in STATISTICS:
        figures = [(cell, found) for cell in group if (found := figure(cell, statistic, confidence)) is not None]
        if not figures:
            continue
        numbers = history.levels(as_series([found for _, found in figures]), least_step(statistic, margin))
        before = 1
        for (cell, found), number in zip(figures, numbers.tolist(), strict=True):
            key = {
                name: cell[name]
                for name in (*_SERIES, "timestamp", "started_at", "load_model", "way", "evidence", "differs")
            }
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
    """Figures of one statistic in several campaigns as arrays."""
    columns = ([getattr(each, name) for each in figures] for name in ("scaled", "error", "freedom"))
    return Series(*(np.array(column, float) for column in columns))
