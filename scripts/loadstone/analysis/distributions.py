"""The figures of single runs, and what charts show of a variant at one rate: latency over time, percentile curves.

Each number is computed once, over measured requests: the tables `run_figures` (of one run, excluded or not),
`time_bins` and `percentile_curves` (of all valid runs, pooled). Percentiles that too few requests support are missing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone import stats
from loadstone.analysis import Row, by_key, replicates, run_requests
from loadstone.analysis.run_requests import Pool, RunRequests, Source, key
from loadstone.analysis.scope import grouped, joined
from loadstone.percentiles import PERCENTILES, RUN_PERCENTILES, SHOWN_PERCENTILES
from loadstone.stats import Latencies
from loadstone.stats.latencies import TimeBins, TimedRequests, clock_set_back_ns

POOLED = ("time_bins", "percentile_curves")

BINS = 30  # at most; by round widths, 15 or more
_STEPS = 8  # of a curve, in each tenth of the tail before it
_NINES = 6
_CLOCK_STEP_NS = 10**9  # clocks that are slewed are set back by less

# Where curves have points: finer towards the tail, and there equally far from each other on an axis of 1 / (1 - share).
_CURVE = [0.01, 0.05, *(tenth / 10 for tenth in range(1, 8)), 0.75, 0.8, 0.85, 0.875] + [
    round(1 - 10 ** -(1 + step / _STEPS), 9) for step in range(_STEPS * (_NINES - 1) + 1)
]
SHARES = sorted({*_CURVE, *PERCENTILES.values()})

_RunLatencies = tuple[NDArray[np.int64], NDArray[np.bool_]]  # of a run, and which requests timed out

CODE = run_requests.CODE, stats.CODE, Path(__file__).read_text("utf-8"), PERCENTILES, list(SHOWN_PERCENTILES)


# Columns of requests that `of_run` reads beside those of every query.
REQUEST_COLUMNS = ("generator", "written_ns")


def of_run(requests: RunRequests) -> Row:
    """The figures of one run, excluded or not, from its measured requests.

    ``latencies_ns`` are at `SHARES`. ``known`` is the number of requests that took less than any that timed out,
    ``success`` the share of successful requests among those with a code (``failed_share`` is the rest), ``repeated``
    the number of requests whose number another one has, too. ``clock_set_back_s`` is None unless it was more than a
    second. ``started_at`` is None if the tool records no time of day; if the clock was set back, it is the time of the
    first request by number.
    """
    own = [(requests.latency_ns, requests.timed_out)]
    latencies = Latencies.pooled(own)
    ok = latencies if requests.ok.all() else Latencies.pooled(own, [requests.ok])
    with_code, failed = int(requests.has_code.sum()), int(requests.failed.sum())
    times_ns, back_ns = requests.times_ns[requests.dated], _clock_set_back_ns(requests)
    return _counts(latencies) | {
        "success": int((requests.has_code & ~requests.failed).sum()) / with_code if with_code else None,
        "failed_share": failed / with_code if with_code else None,
        "mean_ns": latencies.mean(),
        "min_ns": int(latencies.ordered_ns[0]),
        "max_ns": int(latencies.ordered_ns[-1]),
        "latencies_ns": latencies.quantiles(SHARES),
        "ok_n_requests": ok.size,
        "ok_mean_ns": ok.mean() if ok.size else None,
        "ok_percentiles_ns": ok.quantiles([*SHOWN_PERCENTILES.values()]) or None,
        "repeated": int((np.diff(requests.seq) == 0).sum()),
        "clock_set_back_s": back_ns / 1e9 if back_ns else None,
        "started_at": _time(int(times_ns[0] if back_ns else times_ns.min())) if times_ns.size else None,
    }


def _clock_set_back_ns(requests: RunRequests) -> int:
    """0 unless it was more than a second."""
    written_ns, back_ns = requests.also["written_ns"], 0
    for _, own in requests.by_generator():
        back_ns = max(back_ns, clock_set_back_ns(requests.times_ns[own], written_ns[own]))
    return back_ns if back_ns > _CLOCK_STEP_NS else 0


def _time(ns: int) -> datetime:
    """In UTC, without a zone."""
    return datetime(1970, 1, 1) + timedelta(microseconds=ns // 1000)  # noqa: DTZ001


def run_figures(facts: Sequence[Row], figures: Sequence[Row]) -> list[Row]:
    """Rows of table `run_figures`: those of `of_run` without percentiles that too few requests support."""
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

    def compute(chosen: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, Row]]:
        latencies: dict[int, list[_RunLatencies]] = defaultdict(list)
        timed: dict[int, list[TimedRequests]] = defaultdict(list)
        for number, run, requests in source.requests(chosen, files):
            latencies[number].append((requests.latency_ns, requests.timed_out))
            if (with_times := timed_requests(chosen[number].runs[run], requests)) is not None:
                timed[number].append(with_times)
            del requests  # of a large run
        for number, runs in sorted(latencies.items()):
            for row in _time_bins(timed.pop(number, [])):
                yield number, {"table": "time_bins"} | row
            yield number, {"table": "percentile_curves"} | _pooled_curve(runs)

    found = []
    for pool, rows in zip(pools, source.of_pools(pools, compute, lambda _: CODE), strict=True):
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


def timed_requests(run: Row, requests: RunRequests) -> TimedRequests | None:
    """The requests with times since the first measured one; None where times are unknown or the clock was set back."""
    if requests.sent_ns is None or run["clock_set_back_s"] or not (measured := requests.measured).any():
        return None
    since_ns = requests.sent_ns - requests.sent_ns[measured].min()
    return TimedRequests(since_ns, requests.latency_ns, requests.timed_out)


def _pooled_curve(runs: Sequence[_RunLatencies]) -> Row:
    pooled = Latencies.pooled(runs)
    return {"n_runs": len(runs)} | _curve(_counts(pooled) | {"latencies_ns": pooled.quantiles(SHARES)})


def _time_bins(runs: Sequence[TimedRequests]) -> Iterator[Row]:
    if not runs:
        return
    bins = TimeBins.for_variants([runs], BINS, 0)
    for number, n_runs, latencies in bins.latencies(runs):
        from_s, to_s = bins.extent_s(number)
        row = _counts(latencies)
        figures = _percentiles(row, SHOWN_PERCENTILES, latencies.quantiles([*SHOWN_PERCENTILES.values()]))
        del row["known"]
        yield {"from_s": from_s, "to_s": to_s, "n_runs": n_runs, **row, "mean_ns": latencies.mean()} | figures


def _counts(latencies: Latencies) -> Row:
    return {"n_requests": latencies.size, "n_timeouts": latencies.n_timeouts, "known": latencies.known}


def _percentiles(row: Row, names: Mapping[str, float], values: Iterable[float]) -> Row:
    """`values` at the shares `names`, without those that are not estimable."""
    found: Row = {}
    for (name, share), value in zip(names.items(), values, strict=True):
        can_be = stats.estimable(row["n_requests"], share)
        found[f"{name}_ns"] = value if can_be else None
        found[f"{name}_censored"] = can_be and stats.is_lower_bound(row["n_requests"], row["known"], share)
    return found


def _curve(row: Row) -> Row:
    """The shares that the requests support, their latencies, and the first share whose latency is a lower limit."""
    points = [
        (share, value)
        for share, value in zip(SHARES, row.pop("latencies_ns"), strict=True)
        if stats.estimable(row["n_requests"], share)
    ]
    least_from = next(
        (share for share, _ in points if stats.is_lower_bound(row["n_requests"], row["known"], share)), None
    )
    del row["known"]
    curve = {"shares": [share for share, _ in points], "latencies_ns": [value for _, value in points]}
    return row | curve | {"least_from_share": least_from}


def _run(row: Row) -> Row:
    by_share = dict(zip(SHARES, row["latencies_ns"], strict=True))
    figures = _percentiles(row, RUN_PERCENTILES, [by_share[share] for share in RUN_PERCENTILES.values()])
    figures["min_censored"] = stats.is_lower_bound(row["n_requests"], row["known"], 0)
    ok_values = row.pop("ok_percentiles_ns") or [None] * len(SHOWN_PERCENTILES)
    of_ok = {
        f"ok_{name}_ns": value if stats.estimable(row["ok_n_requests"], share) else None
        for (name, share), value in zip(SHOWN_PERCENTILES.items(), ok_values, strict=True)
    }
    return _curve(row) | figures | of_ok
