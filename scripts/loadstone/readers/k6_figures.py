"""What k6's figures mean, whether printed or in JSON."""

from collections.abc import Sequence
from typing import Any

from loadstone.readers.base import Figure
from loadstone.readers.k6_points import DURATION, REQUESTS

FAILED = "http_req_failed"
THRESHOLDS = "THRESHOLDS"  # the section of what a threshold came to: statistic is its expression, value 1: kept
CHECK = "checks{check:"
NS_PER_MS = 1_000_000

_COLUMNS = {
    "avg": "mean_ns",
    "min": "min_ns",
    "med": "p50_ns",
    "p(50)": "p50_ns",
    "p(75)": "p75_ns",
    "p(90)": "p90_ns",
    "p90": "p90_ns",
    "p(95)": "p95_ns",
    "p95": "p95_ns",
    "p(99)": "p99_ns",
    "p99": "p99_ns",
    "p(99.9)": "p999_ns",
    "max": "max_ns",
}


def summary(figures: Sequence[Figure]) -> dict[str, Any]:
    """The columns of ``summaries`` that k6 tells of all requests of a run, those of setup and teardown among them.

    `success` is the share of responses that the script expected (codes 200 to 399 unless it says otherwise). k6 counts
    neither codes nor successes per second.
    """
    whole = {(figure.metric, figure.statistic): figure.value for figure in figures if not figure.section}
    found: dict[str, Any] = {
        column: whole[DURATION, statistic] for statistic, column in _COLUMNS.items() if (DURATION, statistic) in whole
    }
    if (REQUESTS, "count") in whole:
        found["requests"] = int(whole[REQUESTS, "count"])
    success = _success(whole)
    if success is not None:
        found["success"] = success
    return found


def _success(whole: dict[tuple[str, str], float]) -> float | None:
    """As exactly as it is told: counts say it better than a rounded share. k6 says passes of a rate's ones."""
    failed = next((whole[FAILED, name] for name in ("passes", "matches") if (FAILED, name) in whole), None)
    total = whole.get((FAILED, "total"))
    if total is None and failed is not None and (FAILED, "fails") in whole:
        total = failed + whole[FAILED, "fails"]
    if failed is not None and total:
        return min(1.0, max(0.0, 1 - failed / total))
    return None


def check_metric(name: str) -> str:
    """A check's name among the metrics, as k6 calls the submetric of one check."""
    return f"{CHECK}{name}}}"
