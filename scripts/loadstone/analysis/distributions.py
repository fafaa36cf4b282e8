"""The figures of single runs, and what charts show of a variant at one rate: latency over time, percentile curves.

Each number is computed once, over measured requests: the tables `run_figures` (of one run, excluded or not),
`time_bins` and `percentile_curves` (of all valid runs, pooled). Percentiles that too few requests support are missing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from loadstone import sql, stats
from loadstone.analysis import Row, by_key, replicates
from loadstone.analysis.run_requests import Pool, Source, key
from loadstone.analysis.scope import grouped, joined
from loadstone.percentiles import PERCENTILES, SHOWN_PERCENTILES
from loadstone.tables import database

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
    found = source.of_runs("run_figures", facts, shares=SHARES, shown=shown)
    return [rows[0] if rows else {} for rows in found]


def run_figures(facts: Sequence[Row], figures: Sequence[Row]) -> list[Row]:
    """Rows of table `run_figures`: those of `of_runs` without percentiles that too few requests support."""
    return [key(fact) | _run(dict(row)) for fact, row in zip(facts, figures, strict=True) if row]


def of_campaign(source: Source, runs: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of the `POOLED` tables for the valid ones of a campaign's `runs`, which are rows of table `runs`.

    Runs measured in different ways are never pooled.
    """
    valid = grouped([run for run in runs if run["requests_file"] and not run["excluded"]])
    pools = [Pool(sorted({run["requests_file"] for run in each}), replicates.ordered(each)) for each in valid]
    found: dict[str, list[Row]] = {table: [] for table in POOLED}
    for rows in of_pools(source, None, pools):
        for table in POOLED:
            found[table] += rows[table]
    return found


def of_pools(source: Source, comparison: str | None, pools: Sequence[Pool]) -> list[dict[str, list[Row]]]:
    """Rows of the `POOLED` tables for each pool; its runs are of one variant at one rate, measured in one way."""
    shown = list(SHOWN_PERCENTILES.values())

    def compute(chosen: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, Row]]:
        connection = source.connection
        rates = sorted({run["rate"] for pool in chosen for run in pool.runs})
        connection.execute(sql.load("timed_requests"), {"files": files, "rates": rates, "every_phase": False})
        for row in database.rows(connection, sql.load("percentile_curves"), shares=SHARES):
            yield row.pop("pool"), {"table": "percentile_curves"} | _curve(row)
        for row in database.rows(connection, sql.load("time_bins"), bins=BINS, per_bin=0, shares=shown):
            yield row.pop("pool"), {"table": "time_bins"} | _bin(row)

    depends_on = _CODE, SHARES, list(SHOWN_PERCENTILES), BINS
    found = []
    for pool, rows in zip(pools, source.of_pools(pools, compute, lambda _: depends_on), strict=True):
        identity = _series(comparison, pool.runs)
        by_table = by_key(rows, lambda row: row.pop("table"))
        found.append({table: [identity | row for row in by_table[table]] for table in POOLED})
    return found


def _series(comparison: str | None, runs: Sequence[Row]) -> Row:
    """The columns that identify pooled rows."""
    return {
        "comparison": comparison,
        "timestamps": sorted({run["timestamp"] for run in runs}),
        **{name: runs[0][name] for name in ("app", "rate", "variant")},
        **{name: joined(runs, name) for name in ("host", "load_model", "generator")},
    }


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
