"""Whether a share of requests, or by how much it differs between two variants, is the same in several campaigns.

Failures are few, so the variance of a share is that which holds where all campaigns are alike (a score test, as in
`shares`), however well the runs that are there agree. Runs that differ by more than chance lets them multiply it: by
what the runs of that side show, by what all runs show together, or by 1, whichever is the most. Campaigns are set
beside each other as in `homogeneity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.stats.bootstrap import Floats
from loadstone.stats.homogeneity import Estimate, p_same
from loadstone.stats.shares import Share, likeliest

_CLOSE = 1e-6  # the common difference no longer moves


@dataclass(frozen=True)
class Side:
    """The runs of one variant in one campaign: the share that failed of each, and how many requests it had."""

    shares: Floats
    requests: Floats

    @property
    def whole(self) -> Share:
        """All of them."""
        size, requests = self.shares.size, round(float(self.requests.sum()))
        return Share(float(self.shares.mean()), float(self.shares.std()), size, requests)


@dataclass(frozen=True)
class _Dispersion:
    """By how much runs multiply the binomial variance, as so many degrees of freedom tell; 0 where none does."""

    factor: float
    freedom: int


def p_same_share(groups: Sequence[Side]) -> float | None:
    """How often chance would set equal shares so far apart; None where nothing tells it (one campaign, no failure)."""
    sides = [group.whole for group in groups]
    if len(sides) < 2:
        return None
    share = sum(side.value * side.requests for side in sides) / sum(side.requests for side in sides)
    variances = [[share * (1 - share) / side.requests] for side in sides]
    dispersions = [[_Dispersion(side.dispersion, side.informative)] for side in sides]
    least = min(side.n_runs for side in sides)
    return _p([side.value for side in sides], variances, dispersions, least)


def p_same_share_difference(groups: Sequence[tuple[Side, Side]], *, paired: bool) -> float | None:
    """The same of the differences of shares between the second side and the first; `paired` where runs go by pairs."""
    if len(groups) < 2:
        return None
    sides = [(one.whole, other.whole) for one, other in groups]
    if not any(side.value for both in sides for side in both):
        return None
    apart = [other.value - one.value for one, other in sides]
    variances = _alike(sides, apart)
    least = min(side.n_runs for both in sides for side in both)
    if not paired:
        dispersions = [[_Dispersion(side.dispersion, side.informative) for side in both] for both in sides]
        return _p(apart, variances, dispersions, least)
    of_pairs = [[_of_pairs(*group)] for group in groups]
    return _p(apart, [[sum(both)] for both in variances], of_pairs, least)


def _alike(sides: Sequence[tuple[Share, Share]], apart: Sequence[float]) -> list[list[float]]:
    """The binomial variances of all sides where all campaigns have one difference."""
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
    least = likeliest(sides, apart)
    shares = least, least + apart
    return [share * (1 - share) / side.requests for share, side in zip(shares, sides, strict=True)]


def _of_pairs(one: Side, other: Side) -> _Dispersion:
    differences = other.shares - one.shares
    binomial = sum(
        side.whole.value * (1 - side.whole.value) * side.shares.size / float(side.requests.sum())
        for side in (one, other)
    )
    if differences.size < 2 or binomial <= 0:
        return _Dispersion(0.0, 0)
    return _Dispersion(float(differences.var(ddof=1)) / binomial, differences.size - 1)


def _p(
    values: Sequence[float],
    variances: Sequence[Sequence[float]],
    dispersions: Sequence[Sequence[_Dispersion]],
    least_runs: int,
) -> float | None:
    every = [each for group in dispersions for each in group]
    told = sum(each.freedom for each in every)
    together = sum(each.freedom * each.factor for each in every) / max(told, 1)
    # Where of each side all requests failed, or none, no run tells how much runs differ.
    freedom = told or least_runs - 1
    if freedom < 1 or not all(sum(group) > 0 for group in variances):
        return None
    found = []
    for value, group, own in zip(values, variances, dispersions, strict=True):
        parts = [(max(1.0, together, each.factor), variance) for each, variance in zip(own, group, strict=True)]
        least = min(each.freedom or freedom for each in own)
        found.append(Estimate(value, sum(factor * variance for factor, variance in parts), least))
    return p_same(found)
