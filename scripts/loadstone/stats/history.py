"""Figures of campaigns over time: levels in their series, and whether a later figure is worse than an earlier one.

`levels`, for a short series of figures, one per campaign, each with the standard error of its runs.

A series is cut where two levels fit far better than one: every stretch of neighbouring campaigns is compared with all
others of the series. A difference must be significant in two tests, of which the larger p value counts: Student's t
with the scatter of campaigns about the two levels, since campaigns differ by more than their runs show (another day,
another state of the machine), and Welch's t with the errors of single campaigns, since these are not equal. The best
stretch counts, its p value multiplied by how many were tried; half of the level is spent on stretches at an end (one
step; Worsley 1979, "On the likelihood ratio test for a shift in location of normal populations", JASA 74) and half to
those in the middle (there and back; circular binary segmentation, Olshen, Venkatraman, Lucito & Wigler 2004,
Biostatistics 5(4)). The parts are cut again. Steps below a least size are ignored, as in Fleming et al. 2023, "Hunter:
Using Change Point Detection to Hunt for Performance Regressions", ICPE. Neither E-divisive (Daly et al. 2020) nor PELT
(Killick et al. 2012) uses a known error of each point, and both need more points than archives have.

The scatter of few campaigns is poorly known, so it is moderated: the prior assumption that it equals the least size of
a step has three degrees of freedom, to which the series adds its own (as in Smyth 2004, "Linear models and empirical
Bayes methods", Statistical Applications in Genetics and Molecular Biology 3(1), section 3). With single runs only,
which have no errors, four campaigns are needed.

`difference`, of two campaigns: runs are not paired, so the difference of two figures (or of their logarithms, for
ratios) is tested by Welch's t with Satterthwaite's degrees of freedom, as in `loadstone.stats.contrasts`. Where earlier
campaigns show by how much campaigns of one level differ beyond their runs, that variance is added for both. Two
one-sided tests: that the difference is above what is allowed (worse), and that it is below (no worse: non-inferiority;
Walker & Nowacki 2011, "Understanding Equivalence and Noninferiority Testing", J. General Internal Medicine 26(2)).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.bootstrap import t_factor

SIGNIFICANCE = 0.01  # the largest share of series without any change that are cut
LEAST_TO_ESTIMATE = 4  # campaigns
_PRIOR_FREEDOM = 3.0  # degrees of freedom

_Array = NDArray[np.float64]
_TINY_ERROR = 1e-12
_TINY = 1e-24  # variance of a figure that is equal in all runs of all campaigns


@dataclass(frozen=True)
class Series:
    """One figure in m campaigns, in their order: all of shape (m,).

    `values` are on the scale of comparison (logarithms of latencies, shares as they are), `errors` are their standard
    errors over runs with `freedom` degrees of freedom; nan for a single run.
    """

    values: _Array
    errors: _Array
    freedom: _Array

    def part(self, start: int, stop: int) -> "Series":
        """Some neighbouring campaigns."""
        return Series(self.values[start:stop], self.errors[start:stop], self.freedom[start:stop])


def levels(series: Series, least: float, significance: float = SIGNIFICANCE) -> NDArray[np.int64]:
    """The number of the level that each campaign belongs to, from 1; neighbouring levels differ by `least` or more."""
    cuts = _cuts(_with_errors(series), least, significance, (least**2, _PRIOR_FREEDOM))
    return _numbered(series.values, sorted({0, *cuts, len(series.values)}), least)


def between_variance(series: Series, numbers: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """The variance between campaigns of one level beyond that of their runs, and its degrees of freedom.

    `numbers` is the level of each campaign (`levels`; None: the same for all), with whose mean it is compared. The
    moment estimate of Hedges & Olkin 1985, *Statistical Methods for Meta-Analysis*, section 9.3. It is 0 and 0 for
    fewer than three degrees of freedom, the number for four campaigns of one level.
    """
    count = len(series.values)
    _, of, sizes = np.unique(np.zeros(count) if numbers is None else numbers, return_inverse=True, return_counts=True)
    freedom = float(count - len(sizes))
    if freedom < LEAST_TO_ESTIMATE - 1:
        return 0.0, 0.0
    squares = (series.values - (np.bincount(of, series.values) / sizes)[of]) ** 2
    noise = (1 - 1 / sizes[of]) * np.nan_to_num(_with_errors(series).errors) ** 2
    return max(0.0, float((squares - noise).sum()) / freedom), freedom


def _with_errors(series: Series) -> Series:
    """The series with the missing errors of campaigns of one run replaced by that of the other campaigns' runs."""
    known = np.isfinite(series.errors) & (series.freedom > 0)
    if known.all() or not known.any():
        return series
    freedom = float(series.freedom[known].sum())
    squares = series.errors[known] ** 2 * (series.freedom[known] + 1)
    of_a_run = float(np.sqrt(np.sum(squares * series.freedom[known]) / freedom))
    return replace(
        series, errors=np.where(known, series.errors, of_a_run), freedom=np.where(known, series.freedom, freedom)
    )


def _cuts(series: Series, least: float, significance: float, known: tuple[float, float]) -> Iterator[int]:
    """Where the series is cut. `known` is the prior scatter: a variance and its degrees of freedom."""
    stretch, p, scatter = _best(series, least, known)
    if p > significance:
        return
    edges = sorted({0, *stretch, len(series.values)})
    yield from edges[1:-1]
    for start, stop in pairwise(edges):
        yield from (start + cut for cut in _cuts(series.part(start, stop), least, significance, scatter))


def _best(
    series: Series, least: float, known: tuple[float, float]
) -> tuple[tuple[int, int], float, tuple[float, float]]:
    """The stretch that differs most from all others, its p value over all that were tried, and the scatter."""
    from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

    count, has_errors = len(series.values), bool(np.all(np.isfinite(series.errors)))
    if count < (2 if has_errors else LEAST_TO_ESTIMATE):
        return (0, count), 1.0, known
    starts, stops, inside, tried = _stretches(count)
    numbers = np.stack([inside.sum(axis=1), (1 - inside).sum(axis=1)])
    values = series.values - series.values.mean()
    sums = np.stack([inside @ values, (1 - inside) @ values])
    shift = np.abs(sums[0] / numbers[0] - sums[1] / numbers[1])
    squares = np.maximum(0, values @ values - (sums**2 / numbers).sum(axis=0))
    freedom = known[1] + count - 2
    scatter = (known[0] * known[1] + squares) / freedom
    p = 2 * stdtr(freedom, -shift / np.sqrt(scatter * (1 / numbers).sum(axis=0)))
    if has_errors:
        shares = (inside / numbers[0][:, None] + (1 - inside) / numbers[1][:, None]) ** 2 * series.errors**2
        variance = shares.sum(axis=1) + _TINY
        of_runs = variance**2 / ((shares**2 / series.freedom).sum(axis=1) + _TINY**2)
        p = np.maximum(p, 2 * stdtr(of_runs, -shift / np.sqrt(variance)))
    p = np.where(shift < least, 1, p * tried)
    best = int(np.argmin(p))
    return (int(starts[best]), int(stops[best])), float(p[best]), (float(scatter[best]), float(freedom))


@cache
def _stretches(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], _Array, _Array]:
    """Start and stop of every stretch to compare with the rest, which campaigns it has, and how many are tried."""
    ends = [(0, stop) for stop in range(1, count)]
    middle = [(start, stop) for start in range(1, count - 1) for stop in range(start + 1, count)]
    both = 2 if middle else 1
    tried = np.array([both * len(ends)] * len(ends) + [both * len(middle)] * len(middle), float)
    starts, stops = np.array(ends + middle).T
    numbers = np.arange(count)
    inside = ((numbers >= starts[:, None]) & (numbers < stops[:, None])).astype(float)
    return starts, stops, inside, tried


def _numbered(values: _Array, edges: list[int], least: float) -> NDArray[np.int64]:
    """Levels by number; parts that differ by less than `least` are joined again."""
    parts = list(pairwise(edges))
    means = [float(np.mean(values[start:stop])) for start, stop in parts]
    found = np.empty(len(values), np.int64)
    level = 1
    for number, (start, stop) in enumerate(parts):
        level += number > 0 and abs(means[number] - means[number - 1]) >= least
        found[start:stop] = level
    return found


@dataclass(frozen=True)
class Difference:
    """`shift` from the earlier figure to the later one, its standard `error`, and the degrees of freedom of that."""

    shift: float
    error: float
    freedom: float

    def bounds(self, above: float, below: float) -> tuple[float, float]:
        """The least and the greatest shift that the tests don't reject: `p_above`, `p_below` are these levels there."""
        down, up = (t_factor(1 - 2 * level, self.freedom) * self.error for level in (above, below))
        return self.shift - down, self.shift + up

    def p_above(self, allowed: float) -> float:
        """The probability of such a shift or a greater one by chance, if the true one is just what is allowed."""
        return self._student(allowed - self.shift)

    def p_below(self, allowed: float) -> float:
        """The probability of such a shift or a smaller one by chance, if the true one is just what is allowed."""
        return self._student(self.shift - allowed)

    def _student(self, distance: float) -> float:
        from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

        return float(stdtr(self.freedom, distance / (self.error + _TINY_ERROR)))


def difference(
    earlier: tuple[float, float, float], later: tuple[float, float, float], between: tuple[float, float] = (0.0, 0.0)
) -> Difference:
    """From two figures, each with its standard error and that one's degrees of freedom.

    `between` is the variance between campaigns of one level and its degrees of freedom.
    """
    parts = [(error**2, freedom) for _, error, freedom in (earlier, later)]
    if between[0] > 0:
        parts.append((2 * between[0], between[1]))
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / freedom for part, freedom in parts)
    fewest = min(freedom for _, freedom in parts)
    return Difference(later[0] - earlier[0], variance**0.5, variance**2 / below if below > 0 else fewest)
