"""A figure of a cell with its error, on the scale on which campaigns are compared. For `history` and the gate.

Latencies are compared as ratios, so on the scale of their logarithms, where the interval in `cells` is Student's;
shares of errors as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite, log, nan, sqrt
from typing import Any

from loadstone.analysis import open_percentiles
from loadstone.analysis.caveats.figures import DECIDING_SHARE
from loadstone.stats import estimable
from loadstone.stats.bootstrap import t_factor
from loadstone.stats.shares import Share
from loadstone.tables.schema import PERCENTILES

LATENCIES = ("p50", "p90", "p99", "mean")
ERRORS = "error_fraction"
STATISTICS = (*LATENCIES, ERRORS)
REQUESTS, REPORTS = "requests", "reports"  # what a figure rests on

_ROUNDED = sqrt(12)  # a step divided by it is the deviation of a uniform distribution over the step


@dataclass(frozen=True)
class Figure:
    """A statistic of one cell. `value` is in ns, of ``error_fraction`` a share; `low` and `high` its interval.

    `scaled` and `error` (standard error with `freedom` degrees of freedom; not a number where nothing tells it, as of a
    single run) are on the scale of comparison. `share` is there of ``error_fraction`` with an error. `at_least`: the
    figure falls among requests that timed out, and all this is of the least that it is.
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
    elif known := cell.get(open_percentiles.KEY, {}).get(statistic):
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
    """The share of requests that failed, where latencies are of failures too; None where they are hardly.

    Of a request that timed out it is known that it took at least so long: of those alone, latencies are not.
    """
    return cell[ERRORS] if (cell.get("other_failures") or 0.0) > DECIDING_SHARE else None


def lacks(cell: Mapping[str, Any], statistic: str) -> str:
    """Why a cell has no such figure, in words."""
    if cell["evidence"] != REPORTS:
        return (
            "its runs do not tell which requests failed" if statistic == ERRORS else "its requests are too few for that"
        )
    if statistic in PERCENTILES and cell["n_runs"] > 1:
        return "its runs are known by reports alone, and percentiles are never averaged; the mean is told"
    return "the reports of its runs lack this figure, or rest on too few requests"


def unsure(cell: Mapping[str, Any], statistic: str) -> str:
    """Why nobody knows the error of a figure of several runs, in words."""
    if statistic == ERRORS:
        return "the reports do not tell of how many requests the shares of failures are"
    if cell.get(f"{statistic}_censored"):
        return "requests timed out, so that it is not known"
    return "it has no interval"


def change(shift: float, *, is_share: bool) -> float:
    """A difference on the scale of comparison as people read it: a ratio, or a difference of shares."""
    return shift if is_share or not isfinite(shift) else exp(shift)
