"""What a campaign page loads when a rate is chosen: latency over time per variant, and every run for the inspector.

Aggregated to a bounded size, and written as columns to be small: at most 60 time bins per variant and, per run, 108
points of the distribution, 2,000 requests or 150 bins, and two histograms of 40 bins at most.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import sql, stats
from loadstone.analysis import by_key, distributions, run_requests
from loadstone.analysis.run_requests import RunRequests
from loadstone.archive.durable import sha256_of
from loadstone.config.variants import Style
from loadstone.percentiles import PERCENTILES, label
from loadstone.report import chart_rows, numbers, resources_section, run_findings
from loadstone.report.numbers import Unit, rate_name
from loadstone.report.output import as_json, ends_with, write_text
from loadstone.report.queries import Queries, Row
from loadstone.report.run_findings import RunFindings
from loadstone.stats import Latencies
from loadstone.stats.latencies import TimeBins, TimedRequests

TIME_BINS = 60
REQUESTS_PER_BIN = 20
POINTS = 2000
SEQUENCE_BINS = 150
HISTOGRAM_BINS = 40
# Hundredths, then finer steps in the tail.
SHARES = [hundredth / 100 for hundredth in range(100)] + [0.992, 0.994, 0.996, 0.998, 0.999, 0.9995, 0.9999, 1.0]
_REQUESTS = 1_000_000  # read at once: 220 MB; runs of a rate with more are read one by one

# Figures of a run, and their names in the run inspector.
_FIGURES = {"mean": "Mean", "min": "Minimum", **{name: label(name) for name in PERCENTILES}, "max": "Maximum"}
_Part = tuple[str, TimedRequests]  # the requests of one phase of a run
_MADE_BY = (distributions, run_requests, chart_rows, numbers, resources_section, run_findings)
_QUERIES = ("measured_requests", "selected_runs", "run_requests", "page_run_numbers", "page_resources_over_time")
_CODE = run_requests.digest(
    (
        stats.CODE,
        [Path(str(file)).read_text("utf-8") for file in (__file__, *(module.__file__ for module in _MADE_BY))],
        [sql.load(name) for name in _QUERIES],
    )
)


def identity(files: Iterable[Path], runs: Iterable[Row], unit: Unit, styles: Sequence[Style]) -> str:
    """What `gather` depends on: equal identities mean the same content.

    `files` are the rate's files of tables (identified by their content: the site is the same whenever and wherever it
    is built), `runs` its rows of table `runs` and what was found of them (`RunFindings.at`).
    """
    digests = [(file.name, sha256_of(file)) for file in sorted(files)]
    findings = sorted(repr(sorted(row.items())) for row in runs)
    return run_requests.digest((_CODE, digests, findings, unit, [style.name for style in styles]))


def write(
    queries: Queries,
    folder: Path,
    runs: Mapping[float, Sequence[Row]],
    files: Mapping[float, Sequence[Path]],
    *,
    unit: Unit,
    findings: RunFindings,
    styles: Sequence[Style],
) -> set[str]:
    """Write the data files of those rates that changed into `folder`; returns the names of all.

    `runs` and `files` are, by rate, rows of table `runs` and the files of tables; the other arguments are of `gather`.
    """
    outdated, written = {}, set()
    for rate, of_rate in runs.items():
        target = folder / f"{rate_name(rate)}.js"
        made_of = f"// {identity(files.get(rate, ()), [*of_rate, *findings.at(rate)], unit, styles)}\n"
        if not ends_with(target, made_of):
            outdated[rate] = target, made_of
        written.add(target.name)
    for rates in _batches({rate: sum(run["requests"] or 0 for run in runs[rate]) for rate in outdated}):
        for rate, content in gather(queries, rates, unit, findings, styles).items():
            target, made_of = outdated[rate]
            write_text(target, f"loadstone.receive({as_json(rate_name(rate))},{as_json(content)});\n{made_of}")
    return written


def _batches(requests: Mapping[float, int]) -> list[list[float]]:
    """The rates in groups with at most `_REQUESTS` together, if no single one has more; `requests` is by rate."""
    found: list[list[float]] = []
    total = math.inf
    for rate, number in requests.items():
        if total + number > _REQUESTS:
            found.append([])
            total = 0
        found[-1].append(rate)
        total += number
    return found


def gather(
    queries: Queries, rates: Sequence[float], unit: Unit, findings: RunFindings, styles: Sequence[Style]
) -> dict[float, dict[str, Any]]:
    """The content of each rate's data file; latencies in `unit`, times in seconds. `styles` are the page's variants.

    Of all requests of these rates, times and latencies are in memory at once: see `_batches`.
    """
    runs: list[tuple[float, dict[str, Any]]] = []
    timed: dict[float, dict[str, list[_Part]]] = {rate: defaultdict(list) for rate in rates}
    known = {rate: run_findings.of_rate(findings, rate, unit) for rate in rates}
    figures = {row["series"]: row for row in queries.rows("page_run_numbers", rates=rates)}
    is_large = sum(row["n_requests"] for row in figures.values()) > _REQUESTS
    parts = [[series] for series in figures] if is_large else [list(figures)]
    for series, requests in queries.requests(parts):
        row = figures[series]
        inspected = of_run(requests, row["resolution_ns"], unit)
        runs.append((row["rate"], _run(row, unit) | known[row["rate"]].get(_key(row), {}) | inspected))
        if not row["excluded"] and (found := distributions.timed_requests(row, requests)):
            timed[row["rate"]][row["variant"]] += _by_phase(found, requests.also["phase"])
    over_time = {rate: _over_time(variants) for rate, variants in timed.items()}
    usage = resources_section.over_time(queries, rates)
    return {
        rate: {
            "charts": {
                "time": chart_rows.latency_over_time(over_time[rate], styles, unit),
                "usage": chart_rows.resource_usage(_at(rate, usage), styles, "time"),
            },
            "shares": SHARES,
            "figures": _FIGURES,
            "needs": {name: stats.requests_needed(share) for name, share in PERCENTILES.items()},
            "runs": [run for own, run in runs if own == rate],
        }
        for rate in rates
    }


def _at(rate: float, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["rate"] == rate]


def _over_time(variants: Mapping[str, Sequence[_Part]]) -> list[Row]:
    """Latency over time of all runs of each variant, by phase; all have the same bins."""
    if not variants:
        return []
    parts = [[run for _, run in parts] for parts in variants.values()]
    bins, rows = TimeBins.for_variants(parts, TIME_BINS, REQUESTS_PER_BIN), []
    for variant, of_variant in variants.items():
        for phase, of_phase in sorted(by_key(of_variant, itemgetter(0)).items()):
            for number, _, latencies in bins.latencies(run for _, run in of_phase):
                from_s, to_s = bins.extent_s(number)
                rows.append(
                    {
                        "variant": variant,
                        "phase": phase,
                        "from_s": from_s,
                        "to_s": to_s,
                        "n_requests": latencies.size,
                        "percentiles_ns": latencies.quantiles([*chart_rows.OVER_TIME.values()]),
                        "at_least": latencies.censoring(chart_rows.OVER_TIME),
                    }
                )
    return rows


def _by_phase(run: TimedRequests, phases: NDArray[np.object_]) -> list[_Part]:
    parts = [(phase, phases == phase) for phase in dict.fromkeys(phases.tolist())]
    return [
        (phase, TimedRequests(run.since_ns[chosen], run.latencies_ns[chosen], run.timed_out[chosen]))
        for phase, chosen in parts
    ]


def _run(row: Row, unit: Unit) -> dict[str, Any]:
    return {
        "variant": row["variant"],
        "folder": row["variant_dir"],
        "run": row["run"],
        "requests": row["n_requests"],
        "success": row["success"],
        "exclusion_reason": row["exclusion_reason"],
        "figures": {name: unit.of(row[f"{name}_ns"]) for name in _FIGURES if row[f"{name}_ns"] is not None},
        "at_least": [name for name in _FIGURES if _is_lower_bound(row, name)],
        "bins": [],
    }


def _is_lower_bound(row: Row, figure: str) -> bool:
    """Whether a figure of a run is among its requests that timed out, whose latency may have been longer."""
    return bool(row["n_timeouts"] if figure in ("mean", "max") else row[f"{figure}_censored"])


def _key(row: Row) -> tuple[str, str, int]:
    return row["variant"], row["variant_dir"], row["run"]


# --- requests of one run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    seq: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    failed: NDArray[np.bool_]


def of_run(requests: RunRequests, resolution_ns: int | None, unit: Unit) -> dict[str, Any]:
    """The distribution (``cdf``), ``histogram``, and ``points`` or ``bins`` of measured requests.

    Latencies are in `unit`, but those of points in nanoseconds. Nothing without a measured request.
    """
    chosen = requests.measured
    if not chosen.any():
        return {}
    measured = _Measured(requests.seq[chosen], requests.latency_ns[chosen], requests.failed[chosen])
    latencies = Latencies.pooled([(measured.latency_ns, requests.timed_out[chosen])])
    sequence = {"bins": _bins(measured, unit)} if latencies.size > POINTS else {"points": _points(measured)}
    return {
        "cdf": [unit.of(latency) for latency in latencies.quantiles(SHARES)],
        "histogram": _histogram(latencies, resolution_ns, unit),
        **sequence,
    }


def _points(measured: _Measured) -> dict[str, Any]:
    """Every request in order; of numbers that follow each other, as they nearly always do, only the first.

    Latencies are whole nanoseconds: there are so many that rounding them would take longer than all else on the page.
    """
    numbers = measured.seq.tolist()
    consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return {
        "seq": numbers[0] if consecutive else numbers,
        "latency_ns": measured.latency_ns.tolist(),
        "failed": measured.seq[measured.failed].tolist(),
    }


def _bins(measured: _Measured, unit: Unit) -> list[list[Any]]:
    """Bins of consecutive requests: first and last number, failed ones, and min, median, p99 (None: too few), max."""
    seq = measured.seq
    first, last = int(seq[0]), int(seq[-1])
    numbers = np.floor((seq.astype(np.float64) - first) * SEQUENCE_BINS / (last - first + 1))
    numbers = np.minimum(numbers, SEQUENCE_BINS - 1)  # huge numbers are rounded
    found = []
    for part in np.split(np.arange(seq.size), np.flatnonzero(np.diff(numbers)) + 1):
        latencies = Latencies.pooled([(measured.latency_ns[part], np.zeros(part.size, bool))])
        low, median, p99, high = latencies.quantiles([0, 0.5, PERCENTILES["p99"], 1])
        shown = [low, median, p99 if stats.estimable(part.size, PERCENTILES["p99"]) else None, high]
        found.append([int(seq[part[0]]), int(seq[part[-1]]), int(measured.failed[part].sum()), *map(unit.of, shown)])
    return found


def _histogram(latencies: Latencies, resolution_ns: int | None, unit: Unit) -> dict[str, Any]:
    """Two histograms with at most `HISTOGRAM_BINS` bins: half-open, but the last one includes its upper edge.

    ``linear`` has equal widths from the minimum to the 99th percentile; ``beyond`` counts slower requests, which would
    flatten the rest. ``log`` has equal ratios from the minimum to the maximum. With a coarse resolution, no bin is
    narrower than its step: widths of linear bins are multiples of it, and they end with the bin that has the 99th
    percentile.
    """
    latencies = replace(latencies, ordered_ns=np.maximum(latencies.ordered_ns, 1))
    values, (p99_ns,) = latencies.ordered_ns.astype(np.float64), latencies.quantiles([PERCENTILES["p99"]])
    low, step = float(values[0]), resolution_ns if resolution_ns and resolution_ns > 1 else None
    high = max(float(values[-1]), low + (step or 1))
    linear_bins = log_bins = HISTOGRAM_BINS
    if step:
        steps = np.floor((p99_ns - low) / step) + 1
        width = np.ceil(steps / HISTOGRAM_BINS)
        linear_bins = int(np.ceil(steps / width))
        end = low + linear_bins * width * step
        log_bins = int(np.clip(np.floor(np.log(high / low) / np.log(1 + step / low) + 1e-9), 1, HISTOGRAM_BINS))
    else:
        end = max(p99_ns, low + 1)
    within = values[(values < end) if step else (values <= end)]
    linear = np.floor((within - low) / (end - low) * linear_bins + 1e-9)
    log = np.floor(np.log(values / low) / np.log(high / low) * log_bins + 1e-9)
    return {
        "edges": [unit.of(edge) for edge in (low, end, high)],
        "beyond": values.size - within.size,
        "linear": _counts(linear, linear_bins),
        "log": _counts(log, log_bins),
    }


def _counts(numbers: NDArray[np.float64], bins: int) -> Sequence[int]:
    found: list[int] = np.bincount(np.minimum(numbers.astype(np.int64), bins - 1), minlength=bins).tolist()
    return found
