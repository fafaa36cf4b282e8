"""Whether the overheads of two layers add up.

Where two ways lead from one variant to another (bottom, either side, top), ``(top - left) - (right - bottom)`` is 0 if
each layer adds as much above the other as without it: the interaction contrast of a 2 x 2 factorial design (Montgomery
2017, *Design and Analysis of Experiments*, section 5.3). It is greater than 0 if both together take more than each
alone would. Errors are those of `contrasts`: over replicates (or runs) subtracted one by one where runs of all four go
together, so that what moves all alike cancels out; else variances add up, with the degrees of freedom of Satterthwaite
1946. The spread of runs is pooled over the interactions of several loads, as a share of the latencies.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from loadstone.stats.bootstrap import Floats, Replicates, standard_error, t_factor
from loadstone.stats.contrasts import agree_by_rounding, satterthwaite, t_cdf, variance_of_mean
from loadstone.stats.pooled_error import pooled_variances

_SIGNS = (1, -1, -1, 1)  # of bottom, left, right, top
_TINY = 1e-12


@dataclass(frozen=True)
class Interaction:
    """The overhead of both layers together less the sum of their overheads alone, in the figure's unit.

    `variance` is that between runs, with its degrees of `freedom`; the clock adds the variance `rounding`. `one_run` is
    the variance with one run of each variant, as a share of the square of the figure. `n_runs` is the number of runs of
    the variant with fewest.
    """

    value: float
    variance: float
    freedom: float
    rounding: float
    one_run: float
    n_runs: int
    n_pairs: int | None

    @property
    def error(self) -> float:
        """The standard error."""
        return sqrt(self.variance + self.rounding)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Student's t-interval with this confidence (a share)."""
        reach = t_factor(confidence, self.freedom) * self.error
        return self.value - reach, self.value + reach

    def p_different(self) -> float:
        """The probability of such a value, or one farther from 0, by chance."""
        return 2 * t_cdf(-abs(self.value), self.error, self.freedom)


def pool_errors(found: Sequence[Interaction], diamonds: Sequence[Hashable]) -> list[Interaction]:
    """Interactions of one statistic, with variances pooled over them (`pooled_error.pooled_variances`).

    `diamonds` identifies the four variants of each.
    """
    together = pooled_variances(
        [each.one_run for each in found],
        [each.freedom for each in found],
        [each.n_runs for each in found],
        diamonds,
    )
    return [
        replace(each, variance=each.variance * one_run / each.one_run, freedom=freedom, one_run=one_run)
        if each.one_run
        else each
        for each, (one_run, freedom) in zip(found, together, strict=True)
    ]


def interaction(four: Sequence[Replicates], statistic: str, *, paired: bool, step: float = 0.0) -> Interaction | None:
    """The interaction in one statistic of bottom, left, right and top; None if one lacks it or has only one run.

    Each value is only known to half a `step`, which adds the variance of a uniform distribution.
    """
    if any(statistic not in each.draws for each in four):
        return None
    values = [each.values[statistic] for each in four]
    sizes = [each.n_runs for each in four]
    draws, within = ([getattr(each, kind)[statistic] for each in four] for kind in ("draws", "within"))
    if paired:
        variances = [standard_error(_signed(draws), _signed(within), sizes[0]) ** 2]
    else:
        variances = [standard_error(*each) ** 2 for each in zip(draws, within, sizes, strict=True)]
    return _interaction(values, variances, sizes, step, paired=paired)


def interaction_of_runs(four: Sequence[Floats], *, paired: bool, step: float = 0.0) -> Interaction | None:
    """The same of one figure per run, shape (runs,), where requests are not known.

    None also where runs agree to the last digit and no coarse `step` explains it.
    """
    runs = [np.asarray(each, np.float64) for each in four]
    sizes = [each.size for each in runs]
    if min(sizes) < 2:
        return None
    values = [float(each.mean()) for each in runs]
    parts = [_signed(runs)] if paired else runs
    variances = [variance_of_mean(each, max(values)) for each in parts]
    found = _interaction(values, variances, sizes, step, paired=paired)
    return found if found.variance > 0 or agree_by_rounding(step, values) else None


def _signed(four: Sequence[Floats]) -> Floats:
    found: Floats = np.einsum("i,ij->j", np.array(_SIGNS, np.float64), np.array(four))
    return found


def _interaction(
    values: Sequence[float], variances: Sequence[float], sizes: Sequence[int], step: float, *, paired: bool
) -> Interaction:
    """`variances` are those of the four means; of `paired` runs there is only that of their combination."""
    mean_square = max((sum(values) / len(values)) ** 2, _TINY)
    return Interaction(
        value=sum(sign * each for sign, each in zip(_SIGNS, values, strict=True)),
        variance=sum(variances),
        freedom=sizes[0] - 1 if paired else satterthwaite(variances, sizes),
        rounding=len(_SIGNS) * step**2 / 12,
        one_run=sum(each * size for each, size in zip(variances, sizes, strict=not paired)) / mean_square,
        n_runs=min(sizes),
        n_pairs=sizes[0] if paired else None,
    )
