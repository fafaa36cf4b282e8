"""What the run inspector of a campaign page shows of one run's requests: arrays -> content of the rate's data file.

Bounded in size: at most 2,000 requests or 150 bins of them, 108 points of the distribution, and two histograms of up to
40 bins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.run_requests import RunRequests
from loadstone.percentiles import PERCENTILES
from loadstone.report.numbers import Unit
from loadstone.stats import Latencies, estimable

POINTS = 2000
SEQUENCE_BINS = 150
HISTOGRAM_BINS = 40
# Hundredths, then finer steps in the tail.
SHARES = [hundredth / 100 for hundredth in range(100)] + [0.992, 0.994, 0.996, 0.998, 0.999, 0.9995, 0.9999, 1.0]

_BIN_SHARES = [0.5, PERCENTILES["p99"]]


@dataclass(frozen=True)
class _Measured:
    seq: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    failed: NDArray[np.bool_]


def of_run(requests: RunRequests, resolution_ns: int | None, unit: Unit) -> dict[str, Any]:
    """The distribution (``cdf``), ``histogram``, and ``points`` or ``bins`` of measured requests; latencies in `unit`.

    Nothing without a measured request.
    """
    chosen = requests.measured
    if not chosen.any():
        return {}
    measured = _Measured(requests.seq[chosen], requests.latency_ns[chosen], requests.failed[chosen])
    latencies = Latencies.pooled([(measured.latency_ns, requests.timed_out[chosen])])
    sequence = {"bins": _bins(measured, unit)} if latencies.size > POINTS else {"points": _points(measured, unit)}
    return {
        "cdf": [unit.of(latency) for latency in latencies.quantiles(SHARES)],
        "histogram": _histogram(latencies, resolution_ns, unit),
        **sequence,
    }


def _points(measured: _Measured, unit: Unit) -> dict[str, Any]:
    """Every request in order; of numbers that follow each other, as they nearly always do, only the first."""
    numbers = measured.seq.tolist()
    consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return {
        "seq": numbers[0] if consecutive else numbers,
        "latency": [unit.of(latency) for latency in measured.latency_ns.tolist()],
        "failed": measured.seq[measured.failed].tolist(),
    }


def _bins(measured: _Measured, unit: Unit) -> list[list[Any]]:
    """Bins of consecutive requests: first and last number, failed ones, and min, median, p99 (None: too few), max."""
    seq = measured.seq
    numbers = (seq - seq[0]) * SEQUENCE_BINS // (seq[-1] - seq[0] + 1)
    found = []
    for part in np.split(np.arange(seq.size), np.flatnonzero(np.diff(numbers)) + 1):
        latencies = Latencies.pooled([(measured.latency_ns[part], np.zeros(part.size, bool))])
        low, median, p99, high = latencies.quantiles([0, *_BIN_SHARES, 1])
        shown = [low, median, p99 if estimable(part.size, PERCENTILES["p99"]) else None, high]
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
    log = np.floor(np.log(values / low) / np.log(high / low) * log_bins)
    return {
        "edges": [unit.of(edge) for edge in (low, end, high)],
        "beyond": values.size - within.size,
        "linear": _counts(linear, linear_bins),
        "log": _counts(log, log_bins),
    }


def _counts(numbers: NDArray[np.float64], bins: int) -> Sequence[int]:
    found: list[int] = np.bincount(np.minimum(numbers.astype(np.int64), bins - 1), minlength=bins).tolist()
    return found
