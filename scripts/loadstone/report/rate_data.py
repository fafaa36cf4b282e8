"""What a campaign page loads when a rate is chosen: latency over time per variant, and every run for the inspector.

Aggregated by ``sql/page_*.sql`` to a bounded size, and written as columns to be small: at most 60 time bins per
variant and, per run, 108 points of the distribution, 2,000 requests or 150 bins, and two histograms of 40 bins at most.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone import sql, stats
from loadstone.analysis import distributions
from loadstone.archive.durable import sha256_of
from loadstone.config.variants import Style
from loadstone.percentiles import PERCENTILES, label
from loadstone.report import chart_rows, numbers, resources_section, run_findings
from loadstone.report.numbers import Unit
from loadstone.report.queries import Queries, Row
from loadstone.report.run_findings import RunFindings

TIME_BINS = 60
REQUESTS_PER_BIN = 20
POINTS = 2000
SEQUENCE_BINS = 150
HISTOGRAM_BINS = 40
# Hundredths, then finer steps in the tail.
SHARES = [hundredth / 100 for hundredth in range(100)] + [0.992, 0.994, 0.996, 0.998, 0.999, 0.9995, 0.9999, 1.0]

# Figures of a run, and their names in the run inspector.
_FIGURES = {"mean": "Mean", "min": "Minimum", **{name: label(name) for name in PERCENTILES}, "max": "Maximum"}
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


def gather(queries: Queries, rate: float, unit: Unit, findings: RunFindings, styles: Sequence[Style]) -> dict[str, Any]:
    """The content of one rate's data file; latencies in `unit`, times in seconds. `styles` are the page's variants."""
    over_time, runs = [], []
    if queries.read_requests(rate):
        shares = list(chart_rows.OVER_TIME.values())
        over_time = queries.rows("time_bins", bins=TIME_BINS, per_bin=REQUESTS_PER_BIN, shares=shares)
        runs = _runs(queries, rate, unit, run_findings.of_rate(findings, rate, unit))
    return {
        "charts": {
            "time": chart_rows.latency_over_time(over_time, styles, unit),
            "usage": chart_rows.resource_usage(resources_section.over_time(queries, rate), styles, "time"),
        },
        "shares": SHARES,
        "figures": _FIGURES,
        "needs": {name: stats.requests_needed(share) for name, share in PERCENTILES.items()},
        "runs": runs,
    }


def _runs(
    queries: Queries, rate: float, unit: Unit, known: Mapping[tuple[str, str, int], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in queries.rows("page_run_numbers", rate=rate, shares=SHARES):
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
            **known.get(_key(row), {}),
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
    for row in queries.rows("page_run_histogram", rate=rate, bins=HISTOGRAM_BINS):
        found[_key(row)]["histogram"] = {
            "edges": [unit.of(row[name]) for name in ("low_ns", "p99_ns", "high_ns")],
            "beyond": row["n_beyond"],
            "linear": row["linear_counts"],
            "log": row["log_counts"],
        }
    return list(found.values())


def _is_lower_bound(row: Row, figure: str) -> bool:
    """Whether a figure of a run is among its requests that timed out, whose latency may have been longer."""
    return bool(row["n_timeouts"] if figure in ("mean", "max") else row[f"{figure}_censored"])


def _sequence(numbers: list[int]) -> list[int] | int:
    """Request numbers; only the first where they follow each other, as they nearly always do."""
    first = numbers[0]
    return first if numbers == list(range(first, first + len(numbers))) else numbers


def _key(row: Row) -> tuple[str, str, int]:
    return row["variant"], row["variant_dir"], row["run"]
