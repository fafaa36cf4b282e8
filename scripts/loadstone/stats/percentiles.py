"""Percentiles of requests: their values, how many requests they need, and which of them timeouts make lower bounds.

Percentiles are always of pooled requests, never averages over runs, and interpolate linearly between order statistics:
the default of numpy and type 7 of Hyndman & Fan 1996, *Sample Quantiles in Statistical Packages*, The American
Statistician 50(4).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from loadstone.percentiles import MEAN

_Integers = NDArray[np.int64]
_BEYOND = 10  # requests needed beyond a percentile


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
    def pooled(cls, runs: Iterable[tuple[_Integers, NDArray[np.bool_]]]) -> Self:
        """The pooled requests of `runs`, of each the latencies (ns) and which of them timed out."""
        parts = list(runs)
        ordered_ns = np.concatenate([latencies_ns for latencies_ns, _ in parts])
        ordered_ns.sort()
        timeouts = [latencies_ns[timed_out] for latencies_ns, timed_out in parts if timed_out.any()]
        first_ns = min((int(each.min()) for each in timeouts), default=None)
        return cls(ordered_ns, sum(each.size for each in timeouts), first_ns)

    @property
    def size(self) -> int:
        return int(self.ordered_ns.size)

    @property
    def known(self) -> int:
        """How many latencies are shorter than that of any request that timed out."""
        first_ns = self.first_timeout_ns
        return self.size if first_ns is None else int(np.searchsorted(self.ordered_ns, first_ns))

    def mean(self) -> float:
        """From the exact sum (ns)."""
        values = self.ordered_ns
        if max(-int(values[0]), int(values[-1])) > np.iinfo(np.int64).max // values.size:
            return float(sum(values.tolist()) / values.size)
        return int(values.sum()) / values.size

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


def _between(low: int, high: int, share: float) -> float:
    """``low * (1 - share) + high * share``, where the sum is rounded but once.

    As in DuckDB's ``quantile_cont``, so that queries give the same to the last digit.
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
