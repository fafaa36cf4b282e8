"""Error fractions (shares of failed requests), and whether figures of several campaigns agree.

`ShareDifference` tests whether the error fraction of a later campaign is above that of an earlier one by more than is
allowed. Failures are few, so the error of a share can't be estimated from its runs alone: if few runs agree by chance,
or no request failed, that is far too small. The test is the score test of a difference of two shares with the variance
under the hypothesis that the difference is just what is allowed: Farrington & Manning 1990, "Test statistics and sample
size formulae for comparative binomial trials with null hypothesis of non-zero risk difference", Statistics in Medicine
9(12). Where runs differ by more than chance, the variance of each side is multiplied by the dispersion of its runs,
that of the runs of both sides, or 1, whichever is the largest (quasi-binomial: McCullagh & Nelder 1989, *Generalized
Linear Models*, section 4.5; of clusters Rao & Scott 1992, "A simple method for the analysis of clustered binary data",
Biometrics 48). The quotient is taken as Student's t with the degrees of freedom of the runs of both.

`p_equal_means` and `p_equal_differences` test whether groups of runs from several campaigns have one mean. Each pair of
groups is compared by Student's t, and the least p value is multiplied by the number of pairs (Bonferroni). Variances
are not pooled: a steady group says nothing about the variation of another. With the degrees of freedom of the smallest
sample, the test with the sum of several variances keeps its level (Hajek 1962, *Inequalities for the generalized
Student's distribution and their applications*, Selected Translations in Mathematical Statistics and Probability 2);
with those of Satterthwaite, and with the F tests of Welch 1951 or Brown & Forsythe 1974, it does not if there are many
small samples with different variances. Figures that are compared as ratios are passed as logarithms. A sample of one
value, or of equal values, does not show its variation: it gets the variance and degrees of freedom of the sample that
varies most.

`p_equal_shares` and `p_equal_share_differences` do the same for shares, with the variance under the hypothesis that all
campaigns are equal (a score test), multiplied as above.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from loadstone.stats.bootstrap import Floats

_TINY = 1e-12
_ROUNDING = 1e-12  # of a value: what is closer differs by how logarithms were rounded
_CLOSE = 1e-6  # the common difference no longer moves


class Dispersion(NamedTuple):
    """The variance of runs as a multiple of the binomial variance, with its degrees of freedom; 0 where unknown."""

    factor: float = 0.0
    freedom: int = 0


def _pooled(dispersions: Sequence[Dispersion]) -> Dispersion:
    freedom = sum(each.freedom for each in dispersions)
    return Dispersion(sum(each.freedom * each.factor for each in dispersions) / max(freedom, 1), freedom)


@dataclass(frozen=True)
class Share:
    """The mean `value` of the shares of `n_runs` runs, their standard deviation (ddof 0), and all their `requests`."""

    value: float
    deviation: float
    n_runs: int
    requests: int

    @property
    def error(self) -> float:
        """The standard error: that of the runs, but no less than that of requests that fail by chance.

        The latter is that of the share with one failure and one success more: Agresti & Caffo 2000, "Simple and
        effective confidence intervals for proportions and differences of proportions result from adding two successes
        and two failures", The American Statistician 54(4). Not a number for one run.
        """
        if self.n_runs < 2:
            return float("nan")
        n = self.requests + 2
        moved = (self.value * self.requests + 1) / n
        return max(self.deviation / sqrt(self.n_runs - 1), sqrt(moved * (1 - moved) / n))

    @property
    def dispersion(self) -> Dispersion:
        """Unknown where no request failed, or all did."""
        if self.n_runs < 2 or not 0 < self.value < 1:
            return Dispersion()
        binomial = self.value * (1 - self.value) * self.n_runs / self.requests
        return Dispersion(self.deviation**2 * self.n_runs / (self.n_runs - 1) / binomial, self.n_runs - 1)


@dataclass(frozen=True)
class ShareDifference:
    """The difference of the `later` share from the `earlier` one, of at least two runs each.

    `between` is the variance between campaigns of one level and its degrees of freedom.
    """

    earlier: Share
    later: Share
    between: tuple[float, float] = (0.0, 0.0)

    @property
    def shift(self) -> float:
        return self.later.value - self.earlier.value

    def bounds(self, above: float, below: float) -> tuple[float, float]:
        """The least and the greatest shift that the tests don't reject: `p_above`, `p_below` are these levels there."""
        low = _root(lambda allowed: self.p_above(allowed) - above, -1.0, self.shift, -1.0)
        high = _root(lambda allowed: self.p_below(allowed) - below, self.shift, 1.0, 1.0)
        return low, high

    def p_above(self, allowed: float) -> float:
        """The probability of such a shift or a greater one by chance, if the true one is just what is allowed."""
        return self._student(allowed, allowed - self.shift)

    def p_below(self, allowed: float) -> float:
        """The probability of such a shift or a smaller one by chance, if the true one is just what is allowed."""
        return self._student(allowed, self.shift - allowed)

    def _student(self, allowed: float, distance: float) -> float:
        from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

        sides = self.earlier, self.later
        pooled = _pooled([each.dispersion for each in sides])
        apart = min(max(allowed, -1.0), 1.0)
        least = _likeliest_share(sides, apart)
        expected = least, least + apart
        variance = sum(
            max(1.0, pooled.factor, side.dispersion.factor) * share * (1 - share) / side.requests
            for side, share in zip(sides, expected, strict=True)
        )
        freedom = float(pooled.freedom or min(each.n_runs for each in sides) - 1)
        if (between := 2 * self.between[0]) > 0:
            total = variance + between
            freedom = total**2 / (variance**2 / freedom + between**2 / self.between[1])
            variance = total
        return float(stdtr(freedom, distance / (sqrt(max(variance, 0.0)) + _TINY)))


def _likeliest_share(sides: Sequence[Share], apart: float) -> float:
    """The maximum likelihood estimate of the first of two shares, of which the second is greater by `apart`."""
    low, high = max(0.0, -apart), min(1.0, 1.0 - apart)

    def score(share: float) -> float:
        found = 0.0
        for side, expected in zip(sides, (share, share + apart), strict=True):
            failed = side.value * side.requests
            found += failed / max(expected, _TINY) - (side.requests - failed) / max(1 - expected, _TINY)
        return found

    return _root(score, low, high, low if score((low + high) / 2) < 0 else high)


def _root(function: Callable[[float], float], low: float, high: float, otherwise: float) -> float:
    """The zero of a monotonic function between `low` and `high`; `otherwise` if there is none."""
    from scipy.optimize import brentq  # noqa: PLC0415 - as in bootstrap.py

    if low >= high or function(low) * function(high) >= 0:
        return otherwise
    return float(brentq(function, low, high, xtol=1e-12))


@dataclass(frozen=True)
class GroupEstimate:
    """A figure of a group and its `variance`; `freedom` is the least of the parts of the variance."""

    value: float
    variance: float
    freedom: float


def p_equal_means(groups: Sequence[Floats]) -> float | None:
    """The probability that the means of equal groups differ so much, or more, by chance; None if it is unknown.

    It is unknown for fewer than two groups, or if no group has two different values. But if each group of two or more
    values has equal values, and two such groups differ, it is 0.
    """
    return _p_of_groups([[(group, 1.0)] for group in groups])


def p_equal_differences(groups: Sequence[tuple[Floats, Floats]]) -> float | None:
    """The same for the difference of the means of both sides of each group.

    Sides are independent; for paired values use `p_equal_means` of the differences of pairs.
    """
    return _p_of_groups([[(one, -1.0), (other, 1.0)] for one, other in groups])


def p_equal_estimates(estimates: Sequence[GroupEstimate]) -> float | None:
    """The probability that estimates of one value differ so much by chance; None for fewer than two."""
    from scipy.special import stdtr  # noqa: PLC0415 - for the reason given in bootstrap.py

    if len(estimates) < 2:
        return None
    values, variances, freedoms = (
        np.array([getattr(each, name) for each in estimates]) for name in ("value", "variance", "freedom")
    )
    one, other = np.triu_indices(len(estimates), 1)
    apart = np.abs(values[one] - values[other]) / np.sqrt(variances[one] + variances[other])
    found = 2 * stdtr(np.minimum(freedoms[one], freedoms[other]), -apart)
    return float(min(1.0, found.min() * found.size))


def _p_of_groups(groups: Sequence[Sequence[tuple[Floats, float]]]) -> float | None:
    """The same for groups of samples, whose means are added with signs."""
    samples = [sample for group in groups for sample, _ in group]
    varying = max(samples, key=_variance, default=None)
    if varying is None or not _variance(varying):
        return _p_of_ties(groups)
    return p_equal_estimates([_estimate(group, varying) for group in groups])


def _estimate(group: Sequence[tuple[Floats, float]], varying: Floats) -> GroupEstimate:
    sources = [sample if _variance(sample) else varying for sample, _ in group]
    variance = sum(_variance(source) / sample.size for (sample, _), source in zip(group, sources, strict=True))
    return GroupEstimate(_value(group), variance, min(source.size - 1 for source in sources))


def _p_of_ties(groups: Sequence[Sequence[tuple[Floats, float]]]) -> float | None:
    repeated = [group for group in groups if all(sample.size > 1 for sample, _ in group)]
    values = [_value(group) for group in repeated]
    noise = max((_noise(sample) for group in repeated for sample, _ in group), default=0.0)
    return 0.0 if values and max(values) - min(values) > noise else None


def _value(group: Sequence[tuple[Floats, float]]) -> float:
    return sum(sign * float(sample.mean()) for sample, sign in group)


def _variance(values: Floats) -> float:
    """With ddof 1; 0 where it is unknown."""
    if values.size < 2 or float(np.ptp(values)) <= _noise(values):
        return 0.0
    return float(values.var(ddof=1))


def _noise(values: Floats) -> float:
    return _ROUNDING * max(1.0, float(np.abs(values).max()))


@dataclass(frozen=True)
class Side:
    """The runs of one variant in one campaign: the error fraction of each, and its number of requests."""

    shares: Floats
    requests: Floats

    @property
    def pooled(self) -> Share:
        """The share over all runs."""
        size, requests = self.shares.size, round(float(self.requests.sum()))
        return Share(float(self.shares.mean()), float(self.shares.std()), size, requests)


def p_equal_shares(groups: Sequence[Side]) -> float | None:
    """The probability that equal shares differ so much by chance; None if unknown (one campaign, no failure)."""
    sides = [group.pooled for group in groups]
    if len(sides) < 2:
        return None
    share = sum(side.value * side.requests for side in sides) / sum(side.requests for side in sides)
    variances = [[share * (1 - share) / side.requests] for side in sides]
    dispersions = [[side.dispersion] for side in sides]
    least = min(side.n_runs for side in sides)
    return _p_of_shares([side.value for side in sides], variances, dispersions, least)


def p_equal_share_differences(groups: Sequence[tuple[Side, Side]], *, paired: bool) -> float | None:
    """The same for the differences of the second side's shares from the first's; `paired` if runs are paired."""
    if len(groups) < 2:
        return None
    sides = [(one.pooled, other.pooled) for one, other in groups]
    if not any(side.value for both in sides for side in both):
        return None
    apart = [other.value - one.value for one, other in sides]
    variances = _alike(sides, apart)
    least = min(side.n_runs for both in sides for side in both)
    if not paired:
        return _p_of_shares(apart, variances, [[side.dispersion for side in both] for both in sides], least)
    of_pairs = [[_dispersion_of_pairs(*group)] for group in groups]
    return _p_of_shares(apart, [[sum(both)] for both in variances], of_pairs, least)


def _alike(sides: Sequence[tuple[Share, Share]], apart: Sequence[float]) -> list[list[float]]:
    """The binomial variances of all sides, if all campaigns have the same difference."""
    weights = np.array([1 / sum(1 / side.requests for side in both) for both in sides])
    before, common = np.inf, float(weights @ np.asarray(apart) / weights.sum())
    while abs(common - before) > _CLOSE:
        variances = [_variances(both, common) for both in sides]
        wholes = np.array([sum(both) for both in variances])
        if not wholes.min() > 0:
            break
        before, common = common, float((apart / wholes).sum() / (1 / wholes).sum())
    return variances


def _variances(sides: tuple[Share, Share], apart: float) -> list[float]:
    least = _likeliest_share(sides, apart)
    shares = least, least + apart
    return [share * (1 - share) / side.requests for share, side in zip(shares, sides, strict=True)]


def _dispersion_of_pairs(one: Side, other: Side) -> Dispersion:
    differences = other.shares - one.shares
    binomial = sum(
        side.pooled.value * (1 - side.pooled.value) * side.shares.size / float(side.requests.sum())
        for side in (one, other)
    )
    if differences.size < 2 or binomial <= 0:
        return Dispersion()
    return Dispersion(float(differences.var(ddof=1)) / binomial, differences.size - 1)


def _p_of_shares(
    values: Sequence[float],
    variances: Sequence[Sequence[float]],
    dispersions: Sequence[Sequence[Dispersion]],
    least_runs: int,
) -> float | None:
    pooled = _pooled([each for group in dispersions for each in group])
    # Where all requests of each side failed, or none, the variation between runs is unknown.
    freedom = pooled.freedom or least_runs - 1
    if freedom < 1 or not all(sum(group) > 0 for group in variances):
        return None
    found = []
    for value, group, own in zip(values, variances, dispersions, strict=True):
        factors = [max(1.0, pooled.factor, each.factor) for each in own]
        total = sum(factor * variance for factor, variance in zip(factors, group, strict=True))
        found.append(GroupEstimate(value, total, min(each.freedom or freedom for each in own)))
    return p_equal_estimates(found)
