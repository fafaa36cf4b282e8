"""A variant relative to a baseline: the difference, its standard error, and the number of runs that a verdict needs.

Figures that are compared as ratios (latencies, throughput) are on the scale of their logarithms, shares are not. The
error of a difference is that of `bootstrap.standard_error`, over replicates subtracted one by one where runs are
paired; else the variances of both are added, with the degrees of freedom of Welch 1947, *The Generalization of
Student's Problem*, Biometrika 34, and Satterthwaite 1946.

Equivalence is two one-sided tests: Schuirmann 1987, *A comparison of the two one-sided tests procedure and the power
approach for assessing the equivalence of average bioavailability*, J. Pharmacokinetics and Biopharmaceutics 15(6). The
margin of a ratio extends from 1 / (1 + margin) to 1 + margin, which is symmetric on the logarithmic scale.

`holm` and `hommel` adjust the p values of many tests so that with a given confidence not one of them is wrong. They
are those of ``statsmodels.stats.multitest``, which loads pandas (jobs do without).
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loadstone.percentiles import ERRORS
from loadstone.stats.bootstrap import Floats, Replicates, at_least, standard_error, t_factor
from loadstone.stats.pooled_error import pooled_variances

LEAST_RUNS = 3  # of each side that a verdict needs, or twice as many in all
_POWER = 0.8  # the share of tries in which planned runs are to give a verdict
_MOST_RUNS = 1000
_TINY = 1e-9
_COARSE = 0.01  # of a figure: runs differ by more


@dataclass(frozen=True)
class Spread:
    """The standard `error` of a difference, its degrees of `freedom`, and the error with `one_run` of each."""

    error: float
    freedom: float
    one_run: float


@dataclass(frozen=True)
class Contrast:
    """The difference of a figure from that of the baseline: `shift`, and `effect` on the scale of the test.

    `plain` is the spread of the shift, `scaled` that of the effect; the clock adds the variances `rounding` to both.
    `ratio` is None where the baseline's figure is zero, its interval also where the figure is a share. `n_runs` is the
    number of the side with fewer, `n_both` that of both sides, `pooled_freedom` the degrees of freedom that pooling
    over cells added (`pool_errors`). A figure that falls among requests that timed out is replaced by its lower limit:
    `open_side` is 1 if that is the other's (all differences are lower limits too), -1 if it is the baseline's.
    """

    shift: float
    ratio: float | None
    effect: float
    plain: Spread
    scaled: Spread
    rounding: tuple[float, float]
    logs: bool
    n_runs: int
    n_both: int
    n_pairs: int | None
    confidence: float
    pooled_freedom: float = 0.0
    open_side: int = 0

    @property
    def has_enough_runs(self) -> bool:
        """Whether there may be a verdict.

        If half of all runs contain a burst of slow requests, then with two runs per side there is a one-in-eight chance
        that both runs on one side contain one and neither on the other does; no test can distinguish that from a
        difference.
        """
        return self.n_both >= 2 * LEAST_RUNS

    @property
    def error(self) -> float:
        """The standard error of `effect`, the rounding of the clock included."""
        return float(np.hypot(self.scaled.error, np.sqrt(self.rounding[1])))

    @property
    def shift_low(self) -> float:
        return self.shift - self._reach

    @property
    def shift_high(self) -> float:
        return self.shift + self._reach

    @property
    def ratio_low(self) -> float | None:
        return float(np.exp(self.effect - self._width)) if self.logs else None

    @property
    def ratio_high(self) -> float | None:
        return float(np.exp(self.effect + self._width)) if self.logs else None

    @property
    def _reach(self) -> float:
        error = float(np.hypot(self.plain.error, np.sqrt(self.rounding[0])))
        return t_factor(self.confidence, self.plain.freedom) * error

    @property
    def _width(self) -> float:
        return t_factor(self.confidence, self.scaled.freedom) * self.error

    def p_different(self) -> float:
        """The probability of such a difference or a greater one by chance."""
        return 2 * t_cdf(-abs(self.effect), self.error, self.scaled.freedom)

    def p_equivalent(self, margin: float) -> float:
        """The probability that variants that differ by `margin` (a share) are this close by chance."""
        return t_cdf(abs(self.effect) - float(np.log1p(margin)), self.error, self.scaled.freedom)


def pool_errors(contrasts: Sequence[Contrast], variants: Sequence[Hashable]) -> list[Contrast]:
    """Contrasts of one statistic, with spreads pooled over them (`pooled_error.pooled_variances`).

    `variants` identifies the pair of each. The error of a shift is multiplied by the same factor as that of its
    logarithm.
    """
    spreads = [each.scaled for each in contrasts]
    found = pooled_variances(
        [each.one_run**2 for each in spreads],
        [each.freedom for each in spreads],
        [each.n_runs for each in contrasts],
        variants,
    )
    return [_with_spread(each, *new) for each, new in zip(contrasts, found, strict=True)]


def _with_spread(contrast: Contrast, variance: float, freedom: float) -> Contrast:
    old, added = contrast.scaled, freedom - contrast.scaled.freedom
    if old.one_run == 0:
        return contrast
    factor = float(np.sqrt(variance)) / old.one_run
    plain, scaled = (
        Spread(each.error * factor, each.freedom * freedom / old.freedom, each.one_run * factor)
        for each in (contrast.plain, old)
    )
    return replace(contrast, plain=plain, scaled=scaled, pooled_freedom=added)


def contrast(
    baseline: Replicates, other: Replicates, statistic: str, *, paired: bool, confidence: float, step: float = 0.0
) -> Contrast | None:
    """The contrast of one statistic of two variants with at least two runs each; None where it has none (latency 0).

    Both values are only known to half a `step`, however many runs there are: it adds the variance of a uniform
    distribution to each. Equal variants still have equal figures if both are cut off at the first timeout: a test of
    lower limits keeps its level, and a greater lower limit means a greater figure. The error of shares of requests is
    no less than `contrast_of_shares` says.
    """
    both = (baseline, other)
    is_open = [at_least(statistic) in each.draws for each in both]
    names = [at_least(statistic) if each else statistic for each in is_open]
    if all(is_open) or any(name not in each.draws for name, each in zip(names, both, strict=True)):
        return None
    values = [each.values[name] for name, each in zip(names, both, strict=True)]
    sizes = [each.n_runs for each in both]
    draws = [(each.draws[name], each.within[name]) for name, each in zip(names, both, strict=True)]
    if statistic == ERRORS:
        least = _of_shares(values, [each.n_requests for each in both])
        plain = _error(draws, sizes, least, paired=paired)
        return _contrast(values, plain, plain, sizes, paired=paired, confidence=confidence, logs=False, step=0)
    if min(values) <= 0 or any(np.any(part <= 0) for pair in draws for part in pair):
        return None
    plain = _error(draws, sizes, paired=paired)
    logs = _error([(np.log(drawn), np.log(within)) for drawn, within in draws], sizes, paired=paired)
    found = _contrast(values, plain, logs, sizes, paired=paired, confidence=confidence, logs=True, step=step)
    return replace(found, open_side=is_open[1] - is_open[0])


def contrast_of_runs(
    baseline: Floats, other: Floats, *, paired: bool, confidence: float, logs: bool = True, step: float = 0.0
) -> Contrast | None:
    """Contrast computed from one value per run, where requests are unknown: Welch's t, or Student's of pairs.

    None with fewer than two runs on a side or a latency of 0, and where runs agree to the last digit and no coarse
    `step` explains it: their spread is unknown.
    """
    sides = (np.asarray(baseline, np.float64), np.asarray(other, np.float64))
    if min(side.size for side in sides) < 2 or (logs and min(side.min() for side in sides) <= 0):
        return None
    values, sizes = [float(side.mean()) for side in sides], [side.size for side in sides]
    plain = _error_of_runs(sides, paired=paired)
    scaled = plain
    if logs:
        scaled = _error_of_runs([side / value for side, value in zip(sides, values, strict=True)], paired=paired)
    if scaled.error == 0 and not agree_by_rounding(step, values):
        return None
    return _contrast(values, plain, scaled, sizes, paired=paired, confidence=confidence, logs=logs, step=step)


def agree_by_rounding(step: float, values: Sequence[float]) -> bool:
    """Whether figures of runs may be equal because of such a `step` of the clock, not of rounding in reports."""
    return step >= _COARSE * min(values) and step > 0


def contrast_of_shares(
    shares: Sequence[Floats], requests: Sequence[Floats], *, paired: bool, confidence: float
) -> Contrast | None:
    """Contrast computed from a share of each run's `requests`, such as those that failed, of both variants.

    Runs of n requests differ at least by the binomial variance p (1 - p) / n, where p is the share of all requests of
    both sides, even if the present runs agree better. None where that is 0 (all shares are 0, or 1), a side has fewer
    than two runs, or a run has no requests.
    """
    sides, numbers = ([np.asarray(side, np.float64) for side in both] for both in (shares, requests))
    sizes = [side.size for side in sides]
    if min(sizes) < 2 or min(side.min() for side in numbers) <= 0:
        return None
    pooled = sum(float(side @ n) for side, n in zip(sides, numbers, strict=True)) / sum(float(n.sum()) for n in numbers)
    least = [pooled * (1 - pooled) * float(np.mean(1 / n)) / n.size for n in numbers]
    spread = _error_of_runs(sides, least, paired=paired)
    values = [float(side.mean()) for side in sides]
    if spread.error == 0:
        return None
    return _contrast(values, spread, spread, sizes, paired=paired, confidence=confidence, logs=False, step=0)


def _error_of_runs(sides: Sequence[Floats], least: Sequence[float] = (0.0, 0.0), *, paired: bool) -> Spread:
    """Standard error of the difference of two means over runs; `least` are lower limits of their variances."""
    sizes = [side.size for side in sides]
    means = [side.mean() for side in sides]
    variances = [
        max(variance_of_mean(side, mean), floor) for side, mean, floor in zip(sides, means, least, strict=True)
    ]
    paired_variance = max(variance_of_mean(sides[1] - sides[0], max(means)), sum(least)) if paired else None
    return _combined(variances, paired_variance, sizes)


def variance_of_mean(values: Floats, scale: float) -> float:
    """The variance of a mean; 0 if values differ only by rounding errors of figures of such a `scale`."""
    return 0.0 if np.ptp(values) <= _TINY * scale else float(np.var(values, ddof=1)) / values.size


def _of_shares(shares: Sequence[float], requests: Sequence[int]) -> list[float]:
    """The binomial variance of each side's share if both sides are equal."""
    pooled = sum(p * n for p, n in zip(shares, requests, strict=True)) / max(sum(requests), 1)
    return [pooled * (1 - pooled) / max(n, 1) for n in requests]


def _error(
    draws: Sequence[tuple[Floats, Floats]], sizes: Sequence[int], least: Sequence[float] = (0.0, 0.0), *, paired: bool
) -> Spread:
    found = (standard_error(drawn, within, n) ** 2 for (drawn, within), n in zip(draws, sizes, strict=True))
    variances = [max(each, floor) for each, floor in zip(found, least, strict=True)]
    paired_variance = None
    if paired:
        (first, first_within), (second, second_within) = draws
        paired_variance = max(standard_error(second - first, second_within - first_within, sizes[0]) ** 2, sum(least))
    return _combined(variances, paired_variance, sizes)


def _combined(variances: Sequence[float], paired_variance: float | None, sizes: Sequence[int]) -> Spread:
    if paired_variance is not None:
        return Spread(float(np.sqrt(paired_variance)), sizes[0] - 1, float(np.sqrt(paired_variance * sizes[0])))
    spread = float(np.sqrt(sum(each * n for each, n in zip(variances, sizes, strict=True))))
    return Spread(float(np.sqrt(sum(variances))), satterthwaite(variances, sizes), spread)


def satterthwaite(variances: Sequence[float], sizes: Sequence[int]) -> float:
    """Degrees of freedom of a sum of variances of means over so many runs each: Satterthwaite 1946.

    If few runs agree by chance, the formula gives the degrees of freedom of the other means; so where sizes differ it
    is limited to one less than the fewest runs.
    """
    most = sum(sizes) - len(sizes) if len(set(sizes)) == 1 else min(sizes) - 1
    below = sum(each**2 / (n - 1) for each, n in zip(variances, sizes, strict=True))
    return float(min(sum(variances) ** 2 / below, most)) if below else float(most)


def _contrast(
    values: Sequence[float],
    plain: Spread,
    scaled: Spread,
    sizes: Sequence[int],
    *,
    paired: bool,
    confidence: float,
    logs: bool,
    step: float,
) -> Contrast:
    rounding = 2 * step**2 / 12, sum((step / value) ** 2 for value in values) / 12 if logs else 0.0
    ratio = values[1] / values[0] if values[0] > 0 else None
    return Contrast(
        shift=values[1] - values[0],
        ratio=ratio,
        effect=float(np.log(values[1] / values[0])) if logs else values[1] - values[0],
        plain=plain,
        scaled=scaled,
        rounding=rounding,
        logs=logs,
        n_runs=min(sizes),
        n_both=sum(sizes),
        n_pairs=sizes[0] if paired else None,
        confidence=confidence,
    )


def t_cdf(distance: float, error: float, freedom: float) -> float:
    """The probability of Student's t below `distance` / `error`."""
    from scipy.special import stdtr  # noqa: PLC0415 - for the reason given in bootstrap.py

    if error == 0:
        return 0.5 if distance == 0 else float(distance > 0)
    return float(stdtr(freedom, distance / error))


def runs_needed(
    effect: float,
    spread: float,
    alpha: float,
    margin: float | None = None,
    *,
    paired: bool,
    pooled_freedom: float = 0.0,
    rounding: float = 0.0,
) -> int | None:
    """Roughly how many runs of each variant show a difference with a power of 0.8; None for more than 1,000.

    With a `margin` (a share): how many show that the variants are equivalent within it.

    This assumes that `effect` is the true difference and that `spread` (`Spread.one_run`), `pooled_freedom` and the
    variance `rounding` of the clock stay the same; few runs give only rough estimates of the first two. `alpha` is the
    level of this test. The usual sum of both normal quantiles, with Student's t in place of the normal: Chow, Shao &
    Wang 2008, *Sample Size Calculations in Clinical Research*, chapter 3.
    """
    from scipy.special import stdtrit  # noqa: PLC0415

    distance, erring, failing = abs(effect), alpha / 2, 1 - _POWER
    if margin is not None:
        # Of two one-sided tests both must succeed: at no true difference each has half the other's failures.
        distance, erring, failing = float(np.log1p(margin)) - distance, alpha, failing / 2 if effect == 0 else failing
    sides = 1 if paired else 2

    def suffice(runs: int) -> bool:
        freedom = max((runs - 1) * sides + pooled_freedom, 1)
        reach = stdtrit(freedom, 1 - erring) + stdtrit(freedom, 1 - failing)
        return bool(distance > np.sqrt(spread**2 / runs + rounding) * reach)

    found = 2 + bisect_left(range(2, _MOST_RUNS + 1), True, key=suffice)
    return found if found <= _MOST_RUNS else None


def holm(p_values: Sequence[float]) -> list[float]:
    """P values (in the given order) adjusted for multiple tests that depend on each other in any way.

    Holm 1979, *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 6(2).
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return _unsorted(stepped, order)


def hommel(p_values: Sequence[float]) -> list[float]:
    """The same for tests that depend on each other positively, as figures of the same runs do; more power than `holm`.

    Closed testing with the inequality of Simes 1986: Hommel 1988, *A stagewise rejective multiple test procedure based
    on a modified Bonferroni test*, Biometrika 75(2), computed as by Wright 1992, *Adjusted P-values for Simultaneous
    Inference*, Biometrics 48(4). That Simes' inequality holds: Sarkar 1998, *Some probability inequalities for ordered
    MTP2 random variables*, Annals of Statistics 26(2).
    """
    n = len(p_values)
    if n < 2:
        return [float(each) for each in p_values]
    order = np.argsort(p_values, kind="stable")
    p = np.asarray(p_values, np.float64)[order]
    adjusted = np.maximum(p, (n * p / np.arange(1, n + 1)).min())
    for size in range(n - 1, 1, -1):
        cut = n - size + 1
        least = (size * p[cut:] / np.arange(2, size + 1)).min()
        adjusted[:cut] = np.maximum(adjusted[:cut], np.minimum(least, size * p[:cut]))
        adjusted[cut:] = np.maximum(adjusted[cut:], adjusted[cut - 1])
    return _unsorted(adjusted, order)


def _unsorted(values: Floats, order: NDArray[np.intp]) -> list[float]:
    found = np.empty_like(values)
    found[order] = values
    return [float(each) for each in found]


def max_true_nulls(p_values: Sequence[float], alpha: float) -> int:
    """The largest number of tests that may all be of true null hypotheses at level `alpha`, by `hommel`; at least 1.

    A p value is significant where it is at most `alpha` over this number, which is what a test must reach while all
    others stay as they are. Goeman, Meijer, Krebs & Solari 2019, *Simultaneous control of all false discovery
    proportions in large-scale multiple hypothesis testing*, Biometrika 106(4), lemma 2.
    """
    p = np.sort(np.asarray(p_values, np.float64))
    n = len(p)
    for size in range(n, 0, -1):
        if np.all(size * p[n - size :] > alpha * np.arange(1, size + 1)):
            return size
    return 1
