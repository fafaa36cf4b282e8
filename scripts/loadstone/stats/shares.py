"""Is the share of requests that failed in a later campaign above an earlier one's by more than is allowed?

Failures are few, so a share's error is not what its runs happen to show: where few runs agree by chance, or none of
their requests failed, that would be far too little. The test is the score test of a difference of two shares with the
variance that holds where the difference is just what is allowed: Farrington & Manning 1990, "Test statistics and sample
size formulae for comparative binomial trials with null hypothesis of non-zero risk difference", Statistics in Medicine
9(12). Runs that differ by more than chance lets them multiply that variance, each side by what its runs show, by what
the runs of both show together, or by 1, whichever is the most (quasi-binomial: McCullagh & Nelder 1989, *Generalized
Linear Models*, section 4.5; of clusters Rao & Scott 1992, "A simple method for the analysis of clustered binary data",
Biometrics 48). The quotient is taken as Student's t with the degrees of freedom of the runs of both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

_TINY = 1e-12


@dataclass(frozen=True)
class Share:
    """The mean `value` of the shares of `n_runs` runs, and their standard deviation (ddof 0); `requests` of all."""

    value: float
    deviation: float
    n_runs: int
    requests: int

    @property
    def error(self) -> float:
        """The standard error by itself: of the runs, but no less than requests that fail by chance leave.

        That of the share with one failure and one success more: Agresti & Caffo 2000, "Simple and effective confidence
        intervals for proportions and differences of proportions result from adding two successes and two failures",
        The American Statistician 54(4). Not a number for one run.
        """
        if self.n_runs < 2:
            return float("nan")
        n = self.requests + 2
        moved = (self.value * self.requests + 1) / n
        return max(self.deviation / sqrt(self.n_runs - 1), sqrt(moved * (1 - moved) / n))

    @property
    def informative(self) -> int:
        """Degrees of freedom by which runs tell how much they differ: none where no request failed, or all did."""
        return self.n_runs - 1 if 0 < self.value < 1 else 0

    @property
    def dispersion(self) -> float:
        """The variance of runs as a multiple of the binomial's; 0 where nothing tells it."""
        if not self.informative:
            return 0.0
        binomial = self.value * (1 - self.value) * self.n_runs / self.requests
        return self.deviation**2 * self.n_runs / (self.n_runs - 1) / binomial


@dataclass(frozen=True)
class Difference:
    """From the `earlier` share to the `later` one, of at least two runs each.

    `between` is the variance between campaigns of one level and its degrees of freedom.
    """

    earlier: Share
    later: Share
    between: tuple[float, float] = (0.0, 0.0)

    @property
    def shift(self) -> float:
        return self.later.value - self.earlier.value

    def bounds(self, above: float, below: float) -> tuple[float, float]:
        """The shifts that are allowed as far as tests go: those with `p_above` and `p_below` of at least so much."""
        low = _root(lambda allowed: self.p_above(allowed) - above, -1.0, self.shift, -1.0)
        high = _root(lambda allowed: self.p_below(allowed) - below, self.shift, 1.0, 1.0)
        return low, high

    def p_above(self, allowed: float) -> float:
        """How often chance alone would give as much where the true shift is just what is allowed."""
        return self._student(allowed, allowed - self.shift)

    def p_below(self, allowed: float) -> float:
        """How often chance alone would give as little there."""
        return self._student(allowed, self.shift - allowed)

    def _student(self, allowed: float, distance: float) -> float:
        from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

        sides = self.earlier, self.later
        told = sum(each.informative for each in sides)
        together = sum(each.informative * each.dispersion for each in sides) / max(told, 1)
        apart = min(max(allowed, -1.0), 1.0)
        least = likeliest(sides, apart)
        expected = least, least + apart
        variance = sum(
            max(1.0, together, side.dispersion) * share * (1 - share) / side.requests
            for side, share in zip(sides, expected, strict=True)
        )
        freedom = float(told or min(each.n_runs for each in sides) - 1)
        if (beside := 2 * self.between[0]) > 0:
            whole = variance + beside
            freedom = whole**2 / (variance**2 / freedom + beside**2 / self.between[1])
            variance = whole
        return float(stdtr(freedom, distance / (sqrt(max(variance, 0.0)) + _TINY)))


def likeliest(sides: Sequence[Share], apart: float) -> float:
    """The likeliest first share of two sides, of which the second is `apart` from it by just so much."""
    low, high = max(0.0, -apart), min(1.0, 1.0 - apart)

    def score(share: float) -> float:
        found = 0.0
        for side, expected in zip(sides, (share, share + apart), strict=True):
            failed = side.value * side.requests
            found += failed / max(expected, _TINY) - (side.requests - failed) / max(1 - expected, _TINY)
        return found

    return _root(score, low, high, low if score((low + high) / 2) < 0 else high)


def _root(function: Callable[[float], float], low: float, high: float, otherwise: float) -> float:
    """Where a monotonic function is 0 between two places; `otherwise` if it is not."""
    from scipy.optimize import brentq  # noqa: PLC0415 - as in bootstrap.py

    if low >= high or function(low) * function(high) >= 0:
        return otherwise
    return float(brentq(function, low, high, xtol=1e-12))
