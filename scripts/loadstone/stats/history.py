"""Figures of campaigns over time: levels in their series, and whether a later figure is worse than an earlier one.

`levels`, for a short series of figures, one per campaign, each with the standard error of its runs.

A series is cut where two levels fit far better than one: every stretch of neighbouring campaigns is compared with all
others of the series. A difference must be more than chance in two ways, and the larger p value counts: by Student's t
of the scatter of campaigns about the two levels, since campaigns differ by more than their runs tell (another day,
another state of the machine), and by Welch's t of the campaigns' own errors, since these are not alike. The best
stretch counts, its p value multiplied by how many were tried; half of the allowance goes to stretches at an end (one
step; Worsley 1979, "On the likelihood ratio test for a shift in location of normal populations", JASA 74) and half to
those in the middle (there and back; circular binary segmentation, Olshen, Venkatraman, Lucito & Wigler 2004,
Biostatistics 5(4)). The parts are cut again. Steps below a least size count for nothing, as in Fleming et al. 2023,
"Hunter: Using Change Point Detection to Hunt for Performance Regressions", ICPE. Of E-divisive (Daly et al. 2020) and
PELT (Killick et al. 2012) neither takes a known error for each point, and both want more points than archives have.

The scatter of few campaigns is hardly known. So it is moderated: the assumption that it
is as large as the least size that counts, is worth three degrees of freedom, to which the series adds its own (as in
Smyth 2004, "Linear models and empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology
3(1), section 3). Where single runs give no errors at all, four campaigns are needed.

`difference`, of two campaigns: runs have no partners, so the difference of two figures (of logarithms, where ratios
count) is judged by Welch's t with Satterthwaite's degrees of freedom, as in `loadstone.stats.contrasts`; where earlier
campaigns say by how much campaigns of one level differ beyond their runs, that variance is added for both. Two
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

SIGNIFICANCE = 0.01  # the share of series without any change that are cut all the same, at most
LEAST_TO_ESTIMATE = 4  # campaigns
_WORTH = 3.0  # degrees of freedom

_Array = NDArray[np.float64]
_TINY_ERROR = 1e-12
_TINY = 1e-24  # variance of a figure that came out equal in all runs of all campaigns


@dataclass(frozen=True)
class Series:
    """One figure in m campaigns, in their order: all of shape (m,).

    `values` are on a scale where differences count (logarithms of latencies, shares as they are), `errors` their
    standard errors from runs with `freedom` degrees of freedom; not a number for a single run.
    """

    values: _Array
    errors: _Array
    freedom: _Array

    def part(self, start: int, stop: int) -> "Series":
        """Some neighbouring campaigns."""
        return Series(self.values[start:stop], self.errors[start:stop], self.freedom[start:stop])


@dataclass(frozen=True)
class _Cut:
    start: int
    stop: int
    p: float
    scatter: tuple[float, float]  # variance of campaigns about their level, and its degrees of freedom


def levels(series: Series, least: float, significance: float = SIGNIFICANCE) -> NDArray[np.int64]:
    """The number of the level that each campaign belongs to, from 1; neighbouring levels differ by `least` or more."""
    cuts = _cuts(_with_errors(series), least, significance, (least**2, _WORTH))
    return _numbered(series.values, sorted({0, *cuts, len(series.values)}), least)


def between_variance(series: Series, numbers: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """By how much campaigns of one level differ beyond their runs: a variance, and its degrees of freedom.

    `numbers` says of which level each campaign is (`levels`; None: all of one), against whose mean it is set.
    The estimate by moments of Hedges & Olkin 1985, *Statistical Methods for Meta-Analysis*, section 9.3. 0 and 0 where
    fewer than three degrees of freedom tell it, which is what four campaigns of one level leave.
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
    """The error of a campaign of one run is that of the other campaigns' runs, if any has one."""
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
    found = _best(series, least, known)
    if found is None or found.p > significance:
        return
    edges = sorted({0, found.start, found.stop, len(series.values)})
    yield from edges[1:-1]
    for start, stop in pairwise(edges):
        yield from (start + cut for cut in _cuts(series.part(start, stop), least, significance, found.scatter))


def _best(series: Series, least: float, known: tuple[float, float]) -> _Cut | None:
    """The stretch that differs most from the rest, with its p value over all that were tried."""
    from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

    count, has_errors = len(series.values), bool(np.all(np.isfinite(series.errors)))
    if count < (2 if has_errors else LEAST_TO_ESTIMATE):
        return None
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
    return _Cut(int(starts[best]), int(stops[best]), float(p[best]), (float(scatter[best]), float(freedom)))


@cache
def _stretches(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], _Array, _Array]:
    """First and end of every stretch to be compared with the rest, which campaigns it holds, how many are tried."""
    ends = [(0, stop) for stop in range(1, count)]
    middle = [(start, stop) for start in range(1, count - 1) for stop in range(start + 1, count)]
    both = 2 if middle else 1
    tried = np.array([both * len(ends)] * len(ends) + [both * len(middle)] * len(middle), float)
    starts, stops = np.array(ends + middle).T
    numbers = np.arange(count)
    inside = ((numbers >= starts[:, None]) & (numbers < stops[:, None])).astype(float)
    return starts, stops, inside, tried


def _numbered(values: _Array, edges: list[int], least: float) -> NDArray[np.int64]:
    """Levels by number; cuts between parts that differ by less than `least` are taken back."""
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
        """The shifts that are allowed as far as tests go: those with `p_above` and `p_below` of at least so much."""
        down, up = (t_factor(1 - 2 * level, self.freedom) * self.error for level in (above, below))
        return self.shift - down, self.shift + up

    def p_above(self, allowed: float) -> float:
        """How often chance alone would give as much where the true shift is just what is allowed."""
        return self._student(allowed - self.shift)

    def p_below(self, allowed: float) -> float:
        """How often chance alone would give as little there."""
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
