"""The figures of single runs, and what charts show of a variant at one rate: latency over time, percentile curves.

Each number is computed once, over measured requests: the tables `run_figures` (of one run, excluded or not),
`time_bins` and `percentile_curves` (of all valid runs, pooled). Percentiles that too few requests support are missing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from loadstone import sql, stats
from loadstone.analysis import Row, replicates, run_requests
from loadstone.analysis.run_requests import Source, by_run, key
from loadstone.analysis.scope import grouped, joined
from loadstone.percentiles import PERCENTILES, SHOWN_PERCENTILES
from loadstone.tables import database, layout

POOLED = ("time_bins", "percentile_curves")

BINS = 30  # at most; by round widths, 15 or more
_STEPS = 8  # of a curve, in each tenth of the tail before it
_NINES = 6

# Where curves have points: finer towards the tail, and there equally far from each other on an axis of 1 / (1 - share).
_CURVE = [0.01, 0.05, *(tenth / 10 for tenth in range(1, 8)), 0.75, 0.8, 0.85, 0.875] + [
    round(1 - 10 ** -(1 + step / _STEPS), 9) for step in range(_STEPS * (_NINES - 1) + 1)
]
SHARES = sorted({*_CURVE, *PERCENTILES.values()})

# Of a single run: those that tools report, too.
RUN_PERCENTILES = PERCENTILES | {"p75": 0.75}

_CODE = [sql.load(name) for name in ("timed_requests", *POOLED)]


def of_runs(source: Source, facts: Sequence[Row]) -> list[Row]:
    """The row of ``run_figures.sql`` of each of the runs `facts`; empty without single requests."""
    shown = list(SHOWN_PERCENTILES.values())
    found = by_run(facts, lambda file, runs: source.of_cell("run_figures", file, runs, shares=SHARES, shown=shown))
    return [rows[0] if rows else {} for rows in found]


def run_figures(facts: Sequence[Row], figures: Sequence[Row]) -> list[Row]:
    """Rows of table `run_figures`: those of `of_runs` without percentiles that too few requests support."""
    return [key(fact) | _run(dict(row)) for fact, row in zip(facts, figures, strict=True) if row]


def of_cell(source: Source, runs: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of the `POOLED` tables for the valid ones of a cell's `runs`, which are rows of table `runs`.

    Runs measured in different ways are never pooled.
    """
    found: dict[str, list[Row]] = {table: [] for table in POOLED}
    for each in grouped([run for run in runs if run["requests_file"] and not run["excluded"]]):
        ordered = replicates.ordered(each)
        for table, rows in _of_runs(source, {run["requests_file"] for run in each}, ordered).items():
            found[table] += [_series(None, ordered) | row for row in rows]
    return found


def of_series(source: Source, comparison: str, files: Iterable[str], runs: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of the `POOLED` tables for a comparison's runs of one variant at one rate, measured in one way."""
    rows = _of_runs(source, files, runs)
    return {table: [_series(comparison, runs) | row for row in rows[table]] for table in POOLED}


def _series(comparison: str | None, runs: Sequence[Row]) -> Row:
    """The columns that identify pooled rows."""
    return {
        "comparison": comparison,
        "timestamps": sorted({run["timestamp"] for run in runs}),
        **{name: runs[0][name] for name in ("app", "rate", "variant")},
        **{name: joined(runs, name) for name in ("host", "load_model", "generator")},
    }


def _of_runs(source: Source, files: Iterable[str], runs: Sequence[Row]) -> dict[str, list[Row]]:
    files = sorted(files)
    depends_on = (_CODE, SHARES, list(SHOWN_PERCENTILES), BINS, run_requests.identity(runs))
    found: dict[str, list[Row]] = {table: [] for table in POOLED}
    for row in source.cache.rows(depends_on, files, lambda: _computed(source, files, runs)):
        found[row.pop("table")].append(row)
    return found


def _computed(source: Source, files: Sequence[str], runs: Sequence[Row]) -> Iterator[Row]:
    connection, shown = source.connection, list(SHOWN_PERCENTILES.values())
    run_requests.select(connection, runs)
    patterns = [layout.pattern(source.tables / file) for file in files]
    values = {"files": patterns, "rates": sorted({run["rate"] for run in runs}), "every_phase": False}
    connection.execute(sql.load("timed_requests"), values)
    for row in database.rows(connection, sql.load("percentile_curves"), shares=SHARES):
        yield {"table": "percentile_curves"} | _curve(row)
    for row in database.rows(connection, sql.load("time_bins"), bins=BINS, per_bin=0, shares=shown):
        yield {"table": "time_bins"} | _bin(row)


def is_lower_bound(row: Row, share: float) -> bool:
    """Whether only a lower limit of a percentile is known, as in `stats.censoring`.

    `row` has `n_requests`, `n_timeouts` and `known`, the number of requests that took less than any that timed out.
    """
    return bool(row["n_timeouts"]) and math.ceil((row["n_requests"] - 1) * share - 1e-9) >= row["known"]


def _percentiles(row: Row, names: Mapping[str, float], values: Iterable[float]) -> Row:
    """`values` at the shares `names`, without those that are not estimable."""
    found: Row = {}
    for (name, share), value in zip(names.items(), values, strict=True):
        can_be = stats.estimable(row["n_requests"], share)
        found[f"{name}_ns"] = value if can_be else None
        found[f"{name}_censored"] = can_be and is_lower_bound(row, share)
    return found


def _curve(row: Row) -> Row:
    """The shares that the requests support, their latencies, and the first share whose latency is a lower limit."""
    points = [
        (share, value)
        for share, value in zip(SHARES, row.pop("latencies_ns"), strict=True)
        if stats.estimable(row["n_requests"], share)
    ]
    least_from = next((share for share, _ in points if is_lower_bound(row, share)), None)
    del row["known"]
    curve = {"shares": [share for share, _ in points], "latencies_ns": [value for _, value in points]}
    return row | curve | {"least_from_share": least_from}


def _run(row: Row) -> Row:
    by_share = dict(zip(SHARES, row["latencies_ns"], strict=True))
    figures = _percentiles(row, RUN_PERCENTILES, [by_share[share] for share in RUN_PERCENTILES.values()])
    figures["min_censored"] = is_lower_bound(row, 0)
    ok_values = row.pop("ok_percentiles_ns") or [None] * len(SHOWN_PERCENTILES)
    of_ok = {
        f"ok_{name}_ns": value if stats.estimable(row["ok_n_requests"], share) else None
        for (name, share), value in zip(SHOWN_PERCENTILES.items(), ok_values, strict=True)
    }
    return _curve(row) | figures | of_ok


def _bin(row: Row) -> Row:
    figures = _percentiles(row, SHOWN_PERCENTILES, row.pop("percentiles_ns"))
    for name in ("known", "rate", "variant", "phase"):
        del row[name]
    return row | figures
