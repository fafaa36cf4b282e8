"""Whether groups of runs are of one kind: figures of runs that were made in several campaigns.

One-way analysis of variance (Fisher 1925, *Statistical Methods for Research Workers*, chapter VII) of logarithms, on
whose scale runs differ alike at every level; and its like for the difference of two variants, which asks whether that
is the same in every group: the interaction of a two-way layout of cell means (Searle 1987, *Linear Models for
Unbalanced Data*, chapter 4).
"""

from collections.abc import Sequence

import numpy as np

from loadstone.stats.bootstrap import Floats


def p_alike(groups: Sequence[Floats]) -> float | None:
    """How often chance would set the means of groups that are alike so far apart or farther; None if nothing tells it.

    Nothing does for fewer than two groups, or where no group has two values that differ.
    """
    weights = np.array([group.size for group in groups], np.float64)
    return _p([float(group.mean()) for group in groups], weights, groups)


def p_same_difference(groups: Sequence[tuple[Floats, Floats]]) -> float | None:
    """The same of differences: of the means of both sides of each group, which stay apart as far in every group."""
    weights = np.array([1 / (1 / one.size + 1 / other.size) for one, other in groups], np.float64)
    return _p(
        [float(other.mean() - one.mean()) for one, other in groups], weights, [side for pair in groups for side in pair]
    )


def _p(estimates: Sequence[float], weights: Floats, groups: Sequence[Floats]) -> float | None:
    """Of estimates whose variances are that within `groups`, divided by their weights."""
    from scipy.special import fdtrc  # noqa: PLC0415 - for the reason given in bootstrap.py

    freedom = sum(group.size - 1 for group in groups)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    if len(estimates) < 2 or freedom < 1 or within <= 0:
        return None
    found = np.asarray(estimates, np.float64)
    centre = float(weights @ found / weights.sum())
    between = float(weights @ (found - centre) ** 2) / (found.size - 1)
    return float(fdtrc(found.size - 1, freedom, between / (within / freedom)))
