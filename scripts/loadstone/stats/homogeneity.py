"""Whether groups of runs are of one kind: figures of runs that were made in several campaigns.

Every two groups are set beside each other by Student's t, and the least p value is multiplied by their number
(Bonferroni). No spread is pooled: a steady group says nothing of how much another varies. With the degrees of freedom
of the smallest sample, the sum of several variances makes errors at most as often as is said (Hajek 1962, *Inequalities
for the generalized Student's distribution and their applications*, Selected Translations in Mathematical Statistics and
Probability 2), where those of Satterthwaite, and F tests of Welch 1951 or Brown & Forsythe 1974, make more of them once
samples are many, small and unlike. Figures that are ratios by nature go in as logarithms.

Of a sample of one value, or of values that all agree, nobody knows how much it varies: it is taken to vary as much as
the sample that varies most, and has that one's degrees of freedom.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.stats.bootstrap import Floats

_ROUNDING = 1e-12  # of a value: what is closer differs by how logarithms were rounded


@dataclass(frozen=True)
class Estimate:
    """What a group tells, with the `variance` of that, and the least freedom with which a part of it is estimated."""

    value: float
    variance: float
    freedom: float


def p_alike(groups: Sequence[Floats]) -> float | None:
    """How often chance would set the means of groups that are alike so far apart or farther; None if nothing tells it.

    Nothing does for fewer than two groups, or where no group has two values that differ. Only where all groups of two
    or more values agree within each, and not with each other, is that no chance: 0.
    """
    return _p([[(group, 1.0)] for group in groups])


def p_same_difference(groups: Sequence[tuple[Floats, Floats]]) -> float | None:
    """The same of differences: of the means of both sides of each group, which stay apart as far in every group.

    Sides are independent: where their values go by pairs, `p_alike` of the differences of pairs tells it.
    """
    return _p([[(one, -1.0), (other, 1.0)] for one, other in groups])


def p_same(estimates: Sequence[Estimate]) -> float | None:
    """How often chance would set estimates of one and the same so far apart; None for fewer than two."""
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


def _p(groups: Sequence[Sequence[tuple[Floats, float]]]) -> float | None:
    """Of groups whose sides are added with signs."""
    samples = [sample for group in groups for sample, _ in group]
    varying = max(samples, key=_variance, default=None)
    if varying is None or not _variance(varying):
        return _p_of_ties(groups)
    return p_same([_estimate(group, varying) for group in groups])


def _estimate(group: Sequence[tuple[Floats, float]], varying: Floats) -> Estimate:
    sources = [sample if _variance(sample) else varying for sample, _ in group]
    variance = sum(_variance(source) / sample.size for (sample, _), source in zip(group, sources, strict=True))
    return Estimate(_value(group), variance, min(source.size - 1 for source in sources))


def _p_of_ties(groups: Sequence[Sequence[tuple[Floats, float]]]) -> float | None:
    told = [group for group in groups if all(sample.size > 1 for sample, _ in group)]
    values = [_value(group) for group in told]
    noise = max((_noise(sample) for group in told for sample, _ in group), default=0.0)
    return 0.0 if values and max(values) - min(values) > noise else None


def _value(group: Sequence[tuple[Floats, float]]) -> float:
    return sum(sign * float(sample.mean()) for sample, sign in group)


def _variance(values: Floats) -> float:
    """With ddof 1; 0 where nothing tells it."""
    if values.size < 2 or float(np.ptp(values)) <= _noise(values):
        return 0.0
    return float(values.var(ddof=1))


def _noise(values: Floats) -> float:
    return _ROUNDING * max(1.0, float(np.abs(values).max()))
