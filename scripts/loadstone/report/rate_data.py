"""What a campaign page loads when a rate is chosen: latency over time per variant, and every run for the inspector.

Aggregated by ``sql/page_*.sql`` to a bounded size, and written as columns to be small: at most 60 time bins per
variant and, per run, 108 points of the distribution, 2,000 requests or 150 bins, and two histograms of 40 bins at most.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone import sql, stats
from loadstone.analysis import distributions
from loadstone.archive.durable import sha256_of
from loadstone.config.variants import Style
from loadstone.percentiles import PERCENTILES, label
from loadstone.report import chart_rows, numbers, resources_section, run_findings
from loadstone.report.numbers import Unit, rate_name
from loadstone.report.output import as_json, ends_with, write_text
from loadstone.report.queries import Queries, Row
from loadstone.report.run_findings import RunFindings

TIME_BINS = 60
REQUESTS_PER_BIN = 20
POINTS = 2000
SEQUENCE_BINS = 150
HISTOGRAM_BINS = 40
_REQUESTS = 500_000  # read at once: 70 MB
# Hundredths, then finer steps in the tail.
SHARES = [hundredth / 100 for hundredth in range(100)] + [0.992, 0.994, 0.996, 0.998, 0.999, 0.9995, 0.9999, 1.0]

# Figures of a run, and their names in the run inspector.
_FIGURES = {"mean": "Mean", "min": "Minimum", **{name: label(name) for name in PERCENTILES}, "max": "Maximum"}
_Run = tuple[float, str, str, int]  # rate, variant, folder and number
_MADE_BY = (distributions, chart_rows, numbers, resources_section, run_findings)
_QUERIES = (
    "measured_requests",
    "selected_runs",
    "run_figures",
    "timed_requests",
    "time_bins",
    "page_requests",
    "page_run_numbers",
    "page_run_points",
    "page_run_bins",
    "page_run_histogram",
    "page_resources_over_time",
)


def identity(files: Iterable[Path], runs: Iterable[Row], unit: Unit, styles: Sequence[Style]) -> str:
    """What `gather` depends on: equal identities mean the same content.

    `files` are the rate's files of tables (identified by their content: the site is the same whenever and wherever it
    is built), `runs` its rows of table `runs` and what was found of them (`RunFindings.at`).
    """
    modules = (__file__, *(module.__file__ for module in _MADE_BY))
    code = [Path(str(module)).read_text("utf-8") for module in modules]
    digests = [(file.name, sha256_of(file)) for file in sorted(files)]
    findings = sorted(repr(sorted(row.items())) for row in runs)
    made_of = (code, [sql.load(name) for name in _QUERIES], digests, findings, unit, [style.name for style in styles])
    return hashlib.sha256(repr(made_of).encode("utf-8", "backslashreplace")).hexdigest()[:32]


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

    The requests of all these rates are in memory at once: see `_batches`.
    """
    over_time, runs = [], {}
    if queries.read_requests(rates):
        shares = list(chart_rows.OVER_TIME.values())
        over_time = queries.rows("time_bins", bins=TIME_BINS, per_bin=REQUESTS_PER_BIN, shares=shares)
        runs = _runs(queries, unit, {rate: run_findings.of_rate(findings, rate, unit) for rate in rates})
    usage = resources_section.over_time(queries, rates)
    return {
        rate: {
            "charts": {
                "time": chart_rows.latency_over_time(_at(rate, over_time), styles, unit),
                "usage": chart_rows.resource_usage(_at(rate, usage), styles, "time"),
            },
            "shares": SHARES,
            "figures": _FIGURES,
            "needs": {name: stats.requests_needed(share) for name, share in PERCENTILES.items()},
            "runs": [run for key, run in runs.items() if key[0] == rate],
        }
        for rate in rates
    }


def _at(rate: float, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["rate"] == rate]


def _runs(
    queries: Queries, unit: Unit, known: Mapping[float, Mapping[tuple[str, str, int], Mapping[str, Any]]]
) -> dict[_Run, dict[str, Any]]:
    found: dict[_Run, dict[str, Any]] = {}
    for row in queries.rows("page_run_numbers", shares=SHARES):
        found[_key(row)] = {
            "variant": row["variant"],
            "folder": row["variant_dir"],
            "run": row["run"],
            "requests": row["n_requests"],
            "success": row["success"],
            "exclusion_reason": row["exclusion_reason"],
            "figures": {name: unit.of(row[f"{name}_ns"]) for name in _FIGURES if row[f"{name}_ns"] is not None},
            "at_least": [name for name in _FIGURES if _is_lower_bound(row, name)],
            "bins": [],
            **known[row["rate"]].get(_key(row)[1:], {}),
            "cdf": [unit.of(latency) for latency in row["curve_ns"]],
        }
    for row in queries.rows("page_run_points", points=POINTS):
        found[_key(row)]["points"] = {
            "seq": _sequence(row["seqs"]),
            "latency": [unit.of(latency) for latency in row["latencies_ns"]],
            "failed": row["failed_seqs"],
        }
    for row in queries.rows("page_run_bins", points=POINTS, bins=SEQUENCE_BINS):
        latencies = [unit.of(row[f"{name}_ns"]) for name in ("min", "p50", "p99", "max")]
        latencies[2] = latencies[2] if stats.estimable(row["n_requests"], PERCENTILES["p99"]) else None
        found[_key(row)]["bins"].append([row["first_seq"], row["last_seq"], row["n_failed"], *latencies])
    for row in queries.rows("page_run_histogram", bins=HISTOGRAM_BINS):
        found[_key(row)]["histogram"] = {
            "edges": [unit.of(row[name]) for name in ("low_ns", "p99_ns", "high_ns")],
            "beyond": row["n_beyond"],
            "linear": row["linear_counts"],
            "log": row["log_counts"],
        }
    return found


def _is_lower_bound(row: Row, figure: str) -> bool:
    """Whether a figure of a run is among its requests that timed out, whose latency may have been longer."""
    return bool(row["n_timeouts"] if figure in ("mean", "max") else row[f"{figure}_censored"])


def _sequence(numbers: list[int]) -> list[int] | int:
    """Request numbers; only the first where they follow each other, as they nearly always do."""
    first = numbers[0]
    return first if numbers == list(range(first, first + len(numbers))) else numbers


def _key(row: Row) -> _Run:
    return row["rate"], row["variant"], row["variant_dir"], row["run"]
