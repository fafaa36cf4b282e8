"""Requests of a variant at one rate -> intervals and replicates, by resampling.

Intervals become columns of `cells` and `comparisons`. Replicates of the main stream are written to the internal table
`replicates`, from which `analysis/conclusions.py` draws conclusions without reading the requests again.

Runs are sorted and then drawn with a seed derived from campaigns and rate, blocks with one that also includes the
variant. So the replicates of two variants whose runs are paired may be subtracted one by one. Drawing any other random
number in between would break the pairs.
"""

import base64
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import sql, stats
from loadstone.analysis import Row, by_key, run_requests
from loadstone.analysis.run_requests import Pool, RunRequests, Source
from loadstone.percentiles import ERRORS, MEAN, PERCENTILES, SHOWN_PERCENTILES, THROUGHPUT
from loadstone.stats import Latencies, Replicates, Sample
from loadstone.stats.latencies import Moments, deviation
from loadstone.tables import database

_COUNTS = ("n_runs", "n_blocks", "n_requests", "n_timeouts", "offered", "limit_ns")
_CLOCK_SHARE = 0.02  # of the duration of a run: with a coarser clock its throughput is unknown

# Columns of a run that figures of its requests depend on.
RUN_COLUMNS = ("timeout_s", "load_model", "clock_set_back_s", "clock_resolution_ns")

# Everything that replicates depend on, other than requests.
CODE = run_requests.digest((run_requests.CODE, stats.CODE, Path(__file__).read_text("utf-8"), PERCENTILES))
# Everything that the figures of a cell depend on.
CELL_CODE = run_requests.digest((sql.load("counted_requests"), sql.load("cells"), SHOWN_PERCENTILES, CODE))


def ordered(runs: Sequence[Row]) -> list[Row]:
    """Runs in the order in which replicates draw them: equal positions of two variants belong to the same block."""
    return sorted(runs, key=lambda run: (run["host"], run["timestamp"], run["run"], run["variant_dir"]))


def cells(
    source: Source,
    pools: Sequence[Pool],
    confidence: float,
    stream: str | None = None,
    *,
    with_excluded: bool = False,
) -> list[list[Row]]:
    """For each of `pools` the rows of `cells.sql`, with intervals and (as text) replicates.

    There is a row per stream, or only that of `stream`. Requests of excluded runs are left out unless `with_excluded`.
    """
    requests = {"stream": stream, "with_excluded": with_excluded}

    def compute(chosen: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, Row]]:
        source.connection.execute(sql.load("counted_requests"), {"files": files, **requests})
        rows = database.rows(source.connection, sql.load("cells"))
        for cell_stream, of_stream in sorted(by_key(rows, itemgetter("stream")).items()):
            sampled, ok = defaultdict(list), defaultdict(list)
            for number, run, found in source.requests(chosen, files, stream=cell_stream, with_excluded=with_excluded):
                sampled[number].append(_sample(chosen[number].runs[run], found))
                ok[number].append(found.ok)
            for cell in of_stream:
                number = cell.pop("pool")
                own = replicate(chosen[number].runs, sampled[number])
                figures = _latencies(sampled[number], ok[number]) | intervals(own, confidence)
                yield number, cell | figures | {"replicates": to_text(own)}

    def depends_on(pool: Pool) -> object:
        names = ("app", "variant", *RUN_COLUMNS)
        return CELL_CODE, [tuple(run[name] for name in names) for run in pool.runs], confidence, requests

    return source.of_pools(pools, compute, depends_on)


def _latencies(sampled: Sequence[Sample], ok: Sequence[NDArray[np.bool_]]) -> Row:
    """Figures of the pooled requests and of those that `ok` marks by run: lower bounds where requests timed out."""
    requests = [(sample.latencies_ns, sample.censored) for sample in sampled]
    pooled = Latencies.pooled(requests)
    row = {
        f"{name}_ns": value for name, value in zip(PERCENTILES, pooled.quantiles([*PERCENTILES.values()]), strict=True)
    }
    row |= {f"{name}_censored": is_lower for name, is_lower in pooled.censoring(PERCENTILES).items()}
    row |= {f"{name}_estimable": stats.estimable(pooled.size, share) for name, share in PERCENTILES.items()}
    row |= {"n_timeouts": pooled.n_timeouts, "mean_ns": pooled.mean()}
    shown, of_all = pooled, Moments.of(pooled)
    of_ok = of_all
    if not all(of_run.all() for of_run in ok):
        del pooled, shown  # of many requests they are large
        shown = Latencies.pooled(requests, ok)
        of_ok = Moments.of(shown)
    values = shown.quantiles([*SHOWN_PERCENTILES.values()]) or repeat(None)
    return (
        row
        | {"std_ns": deviation([of_all.without(of_ok), of_ok])}
        | {"ok_mean_ns": shown.mean() if shown.size else None}
        | {"ok_std_ns": math.sqrt(of_ok.mean_and_variance()[1]) if shown.size else None}
        | {f"ok_{name}_ns": value for name, value in zip(SHOWN_PERCENTILES, values, strict=False)}
    )


def _sample(run: Row, requests: RunRequests) -> Sample:
    paced = run["load_model"] == "open"  # requests are sent at a fixed rate, so the attack ends with the last interval
    sent_ns, latencies_ns, failed = requests.sent_ns, requests.latency_ns, requests.failed
    answered = ~failed
    completed, span_ns = answered.copy(), 0.0
    if sent_ns is not None:
        size, ends_ns, first, last = sent_ns.size, sent_ns + latencies_ns, int(sent_ns.min()), int(sent_ns.max())
        if not run["clock_set_back_s"]:
            span_ns = (last - first) * size / max(size - 1, 1) if paced else float(ends_ns.max() - first)
        if (run["clock_resolution_ns"] or 0) > _CLOCK_SHARE * span_ns:
            span_ns = 0.0
        if paced and answered.any():
            completed &= ends_ns <= ends_ns[answered].min() + span_ns
    limit_ns = None if run["timeout_s"] is None else run["timeout_s"] * 1e9
    return Sample(
        latencies_ns, requests.has_code, failed, requests.timed_out, completed, span_ns / 1e9 or None, limit_ns
    )


def replicate(runs: Sequence[Row], sampled: Sequence[Sample]) -> Replicates:
    """Replicates of one series. All variants of the same campaigns draw the same runs at one rate."""
    app, rate = runs[0]["app"], runs[0]["rate"]
    places = sorted({(run["host"], run["timestamp"]) for run in runs})
    return stats.replicate(
        sampled,
        PERCENTILES,
        stats.seed("runs", app, places, rate),
        stats.seed("blocks", app, places, rate, runs[0]["variant"]),
    )


def intervals(found: Replicates, confidence: float) -> Row:
    """Columns of `cells` and `comparisons`: intervals and throughput."""
    row: Row = {}
    for name in (MEAN, *PERCENTILES, ERRORS, THROUGHPUT):
        unit = "" if name in ("error_fraction", "throughput") else "_ns"
        if bounds := stats.interval(found, name, confidence):
            row[f"{name}_low{unit}"], row[f"{name}_high{unit}"] = bounds
    return row | {"throughput": found.values.get("throughput")}


# --- stored ----------------------------------------------------------------------------------------------------------


def to_text(found: Replicates) -> str:
    """As one text, for the cache. Draws have single precision."""
    return json.dumps(vars(found), default=lambda drawn: base64.b64encode(drawn.astype("<f4").tobytes()).decode())


def from_text(text: str) -> Replicates:
    """Inverse of `to_text`."""
    content = json.loads(text)
    for name in ("draws", "within"):
        drawn = {statistic: np.frombuffer(base64.b64decode(each), "<f4") for statistic, each in content[name].items()}
        content[name] = {statistic: values.astype(np.float64) for statistic, values in drawn.items()}
    return Replicates(**content)


def rows(key: Mapping[str, Any], found: Replicates) -> Iterator[Row]:
    """Rows of table `replicates` for one cell."""
    for name, value in found.values.items():
        yield {
            **key,
            "statistic": name,
            "value": value,
            "draws": found.draws.get(name),
            "within": found.within.get(name),
        } | {name: getattr(found, name) for name in _COUNTS}


def from_rows(rows: Sequence[Row]) -> Replicates:
    """Inverse of `rows`."""
    draws, within = (
        {row["statistic"]: np.asarray(row[name], np.float64) for row in rows if row[name] is not None}
        for name in ("draws", "within")
    )
    values = {row["statistic"]: row["value"] for row in rows}
    return Replicates(values, draws, within, *(rows[0][name] for name in _COUNTS))
