"""Latencies of pooled requests: percentiles, which timeouts make lower bounds, bins of time, and send lags.

Percentiles are always of pooled requests, never averages over runs, and interpolate linearly between order statistics:
the default of numpy and type 7 of Hyndman & Fan 1996, *Sample Quantiles in Statistical Packages*, The American
Statistician 50(4).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadstone.percentiles import MEAN

_Integers = NDArray[np.int64]
_SAFE = 2**62 - 1  # no sum of two such numbers overflows
_PART = 1 << 17  # requests whose squares are in memory at once
_BEYOND = 10  # requests needed beyond a percentile
_MS, _S = 1_000_000, 1_000_000_000
_WIDTHS_NS = [
    *(width * _MS for width in (1, 2, 5, 10, 20, 50, 100, 200, 250, 500)),
    *(width * _S for width in (1, 2, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600)),
]
_WIDEST_NS = 86400 * _S


@dataclass(frozen=True)
class Latencies:
    """The latencies of some requests, pooled and sorted.

    Of them `n_timeouts` timed out, which took at least `first_timeout_ns` (None: none timed out): their latencies are
    lower bounds.
    """

    ordered_ns: _Integers
    n_timeouts: int
    first_timeout_ns: int | None

    @classmethod
    def pooled(
        cls, runs: Iterable[tuple[_Integers, NDArray[np.bool_]]], only: Sequence[NDArray[np.bool_]] | None = None
    ) -> Self:
        """The pooled requests of `runs`, of each the latencies (ns) and which of them timed out.

        Or `only` some of each run. Of all requests there is one copy, since they may be millions.
        """
        parts = list(runs)
        masks: Sequence[Any] = only or [slice(None)] * len(parts)
        sizes = map(np.count_nonzero, only) if only else (latencies_ns.size for latencies_ns, _ in parts)
        ends = np.cumsum([0, *sizes]).tolist()
        ordered_ns, timeouts = np.empty(ends[-1], np.int64), []
        for (latencies_ns, timed_out), mask, (low, high) in zip(parts, masks, pairwise(ends), strict=True):
            ordered_ns[low:high] = latencies_ns[mask]
            timeouts.append(ordered_ns[low:high][timed_out[mask]])
        ordered_ns.sort()
        first_ns = min((int(each.min()) for each in timeouts if each.size), default=None)
        return cls(ordered_ns, sum(each.size for each in timeouts), first_ns)

    @property
    def size(self) -> int:
        return int(self.ordered_ns.size)

    @property
    def known(self) -> int:
        """How many latencies are shorter than that of any request that timed out."""
        first_ns = self.first_timeout_ns
        return self.size if first_ns is None else int(np.searchsorted(self.ordered_ns, first_ns))

    def total(self) -> int:
        """The exact sum (ns)."""
        values = self.ordered_ns
        if values.size and _largest(values) > np.iinfo(np.int64).max // values.size:
            return sum(values.tolist())
        return int(values.sum())

    def mean(self) -> float:
        """From the exact sum (ns)."""
        return self.total() / self.size

    def squares(self) -> int:
        """The exact sum of squares (ns²)."""
        found = 0
        for part in range(0, self.size, _PART):
            values = self.ordered_ns[part : part + _PART]
            if _largest(values) > _SAFE:
                found += sum(value * value for value in values.tolist())
                continue
            high, low = np.divmod(np.abs(values), 1 << 31)
            found += (_sum(high * high) << 62) + (_sum(high * low) << 32) + _sum(low * low)
        return found

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The quantiles at `shares` (0 to 1) in ns; empty without requests."""
        places = [(self.size - 1) * share for share in shares] if self.size else []
        ends = [(int(self.ordered_ns[math.floor(place)]), int(self.ordered_ns[math.ceil(place)])) for place in places]
        return [_between(low, high, place % 1) for (low, high), place in zip(ends, places, strict=True)]

    def censoring(self, shares: Mapping[str, float]) -> dict[str, bool]:
        """Whether ``mean`` and each named percentile are only lower bounds, because of timeouts."""
        known = self.known
        return {MEAN: self.n_timeouts > 0} | {
            name: is_lower_bound(self.size, known, share) for name, share in shares.items()
        }


@dataclass(frozen=True)
class Moments:
    """Exact sums of some latencies: how many there are, their total (ns), and the total of their squares (ns²)."""

    size: int
    total: int
    squares: int

    @classmethod
    def of(cls, latencies: Latencies) -> Self:
        return cls(latencies.size, latencies.total(), latencies.squares())

    def without(self, other: "Moments") -> "Moments":
        """Those of the rest, where `other` are some of these latencies."""
        return Moments(self.size - other.size, self.total - other.total, self.squares - other.squares)

    def mean_and_variance(self) -> tuple[float, float]:
        """In ns and ns²; the variance has ddof 0."""
        middle = self.total // self.size
        off = (self.total - self.size * middle) / self.size
        square = (self.squares - 2 * middle * self.total + self.size * middle**2) / self.size
        return middle + off, max(square - off * off, 0.0)


def deviation(parts: Sequence[Moments]) -> float:
    """The standard deviation of all parts together, which have at least one latency, with ddof 0 (ns)."""
    known = [(part.size, *part.mean_and_variance()) for part in parts if part.size]
    size = sum(part_size for part_size, _, _ in known)
    centre = sum(part_size * mean for part_size, mean, _ in known) / size
    total = sum(part_size * (variance + (mean - centre) * (mean - centre)) for part_size, mean, variance in known)
    return math.sqrt(total / size)


def _sum(values: _Integers) -> int:
    """Exact, of numbers from 0 to 2^62."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _between(low: int, high: int, share: float) -> float:
    """``low * (1 - share) + high * share``, where the sum is rounded but once.

    As in DuckDB's ``quantile_cont``, so that queries give the same to the last digit (below 2^53 ns, 104 days).
    """
    (first, of_first), (second, of_second) = (1 - share).as_integer_ratio(), (high * share).as_integer_ratio()
    return (low * first * of_second + second * of_first) / (of_first * of_second)


def is_lower_bound(requests: int, known: int, share: float) -> bool:
    """Whether a percentile is only a lower bound: not all requests up to it are among the `known` ones.

    `known` of `requests` took less than any that timed out.
    """
    return known < requests and math.ceil((requests - 1) * share - 1e-9) >= known


def estimable(requests: int, probability: float) -> bool:
    """Whether a sample supports this percentile: at least ten requests are expected beyond it.

    The number beyond it is binomial; ten expected on the rarer side is the customary success/failure condition (Moore,
    McCabe & Craig, *Introduction to the Practice of Statistics*). p99 needs 1,000 requests, p99.9 needs 10,000.
    """
    return requests * min(probability, 1 - probability) >= _BEYOND - 1e-9


def requests_needed(probability: float) -> int:
    """The number of requests that a percentile needs."""
    return math.ceil(_BEYOND / min(probability, 1 - probability) - 1e-9)


# --- over time --------------------------------------------------------------------------------------------------------


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
            latencies_ns, timed_out = run.latencies_ns, run.timed_out
            if (np.diff(numbers) < 0).any():
                order = np.argsort(numbers, kind="stable")
                numbers, latencies_ns, timed_out = numbers[order], latencies_ns[order], timed_out[order]
            edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), numbers.size]
            for low, high in pairwise(edges):
                parts[int(numbers[low])].append((latencies_ns[low:high], timed_out[low:high]))
        for number, of_runs in sorted(parts.items()):
            yield number, len(of_runs), Latencies.pooled(of_runs)

    def extent_s(self, number: int) -> tuple[float, float]:
        """From when to when (s) bin `number` lasts."""
        return number * self.width_ns / 1e9, (number + 1) * self.width_ns / 1e9


def _rounded(value: float) -> int:
    """Halves are rounded up."""
    return int(np.floor(value + 0.5))


# --- on a schedule ----------------------------------------------------------------------------------------------------


def send_lags(seq: _Integers, sent_ns: _Integers, interval_ns: int) -> tuple[int, _Integers]:
    """When request 0 of one load generator was due (ns), and how much later than due each of these requests was sent.

    Request number n is due n intervals after request 0, which was due at the earliest start that any request implies.
    No request is sent early, so one punctual request is enough, and a late first request does not hide the lag of all
    others. Latencies since requests were due are the sum of both: Tene 2013, "How NOT to measure latency" (coordinated
    omission). That is exact, not an estimate, because every request was sent and its due time is known.
    """
    if _largest(seq) * interval_ns + _largest(sent_ns) > _SAFE:
        seq, sent_ns = seq.astype(object), sent_ns.astype(object)
    starts_ns = sent_ns - seq * interval_ns
    zero_ns = starts_ns.min()
    return int(zero_ns), starts_ns - zero_ns


def clock_set_back_ns(sent_ns: _Integers, latencies_ns: _Integers) -> int:
    """By how much the clock of one load generator was set back between two consecutive requests.

    Requests are in the order of their numbers, which is that of sending (vegeta) or of completion (k6). So both start
    and end of a request must have been set back by that much.
    """
    ends_ns = sum_of(sent_ns, latencies_ns)
    if max(_largest(sent_ns), _largest(ends_ns)) > _SAFE:
        sent_ns, ends_ns = sent_ns.astype(object), ends_ns.astype(object)
    return int(np.minimum(-np.diff(sent_ns), -np.diff(ends_ns)).max(initial=0))


def sum_of(first: _Integers, second: _Integers) -> _Integers:
    """Exact: of Python's integers where 64 bits may not be enough, which only invalid files have."""
    if _largest(first) + _largest(second) > _SAFE:
        first, second = first.astype(object), second.astype(object)
    return first + second


def _largest(values: _Integers) -> int:
    """The largest absolute value."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))
