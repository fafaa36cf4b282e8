"""Latency over time: the requests of runs by equal intervals of the time since each run began."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.percentiles import Latencies

_Integers = NDArray[np.int64]

_MS, _S = 1_000_000, 1_000_000_000
_WIDTHS_NS = [
    *(width * _MS for width in (1, 2, 5, 10, 20, 50, 100, 200, 250, 500)),
    *(width * _S for width in (1, 2, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600)),
]
_WIDEST_NS = 86400 * _S


@dataclass(frozen=True)
class TimedRequests:
    """Requests of one run, at least one; all arrays have their number as length.

    `since_ns` is when each was sent, since the first measured one: negative in a warm-up. `latencies_ns` of those that
    `timed_out` are lower bounds.
    """

    since_ns: _Integers
    latencies_ns: _Integers
    timed_out: NDArray[np.bool_]


@dataclass(frozen=True)
class TimeBins:
    """Bins of `width_ns`; requests sent after the last one, number `last`, belong to it. Warm-ups are before bin 0."""

    width_ns: float
    last: int

    @classmethod
    def for_variants(cls, variants: Sequence[Sequence[TimedRequests]], bins: int, per_bin: int) -> Self:
        """The bins of `variants`, each with the requests of one or more runs, over one axis.

        They have the smallest round width with at most `bins` bins up to the last request and, on average, at least
        `per_bin` requests per bin and variant. The last bin is at least half as wide as the others.
        """
        runs = [run for variant in variants for run in variant]
        end_ns = max(1, *(int(run.since_ns.max()) for run in runs))
        span_ns = end_ns - min(0, *(int(run.since_ns.min()) for run in runs))
        per_variant = sum(run.since_ns.size for run in runs) / len(variants)
        fitting = (
            width_ns
            for width_ns in _WIDTHS_NS
            if _rounded(span_ns / width_ns) <= bins and per_variant * width_ns / span_ns >= per_bin
        )
        width_ns = next(fitting, _WIDEST_NS)
        return cls(width_ns, max(_rounded(end_ns / width_ns), 1) - 1)

    def latencies(self, runs: Iterable[TimedRequests]) -> Iterator[tuple[int, int, Latencies]]:
        """For each bin with requests, in order: its number, the number of runs with requests in it, their latencies."""
        parts: dict[int, list[tuple[_Integers, NDArray[np.bool_]]]] = defaultdict(list)
        for run in runs:
            numbers = np.minimum(np.floor(run.since_ns / self.width_ns), self.last).astype(np.int64)
            columns = [numbers, run.latencies_ns, run.timed_out]
            if (np.diff(numbers) < 0).any():
                order = np.argsort(numbers, kind="stable")
                columns = [values[order] for values in columns]
            edges = np.flatnonzero(np.diff(columns[0])) + 1
            of_bins = [np.split(values, edges) for values in columns]
            for of_bin, latencies_ns, timed_out in zip(*of_bins, strict=True):
                parts[int(of_bin[0])].append((latencies_ns, timed_out))
        for number, of_runs in sorted(parts.items()):
            yield number, len(of_runs), Latencies.pooled(of_runs)

    def extent_s(self, number: int) -> tuple[float, float]:
        """From when to when (s) bin `number` lasts."""
        return number * self.width_ns / 1e9, (number + 1) * self.width_ns / 1e9


def _rounded(value: float) -> int:
    """Halves are rounded up."""
    return int(np.floor(value + 0.5))
