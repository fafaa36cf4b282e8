"""Pooled standard errors: the variance between runs of a cell, estimated from its own runs and those of other cells.

Three runs give only a rough estimate of their variance, so intervals by Student's t are wide: with two degrees of
freedom, a 95 % interval extends 4.3 standard errors to either side, or 25 after correction for thirty comparisons. All
cells of a page are measured on one machine, and the logarithms of latencies vary similarly at different loads. So the
variances of cells are shrunk towards each other: the moderated t of Smyth 2004, *Linear Models and Empirical Bayes
Methods for Assessing Differential Expression in Microarray Experiments*, Statistical Applications in Genetics and
Molecular Biology 3(1). True variances of cells are assumed to come from a scaled inverse chi-square distribution
(location s0², d0 degrees of freedom), so that the variance s² of a cell with d degrees of freedom, and its true
variance given s², are

    s² ~ s0² F(d, d0)        (d0 s0² + d s²) / chi²(d0 + d)

Smyth estimates s0² and d0 from thousands of genes. A page has few cells, from which d0 can hardly be estimated, and
assuming that cells are equal because they look equal gives false verdicts. So neither is estimated: the result is
averaged over all s0² and d0, weighted by their likelihood. The prior is uniform in log s0² and in the standard
deviation of true log variances (Gelman 2006, *Prior distributions for variance parameters in hierarchical models*,
Bayesian Analysis 1(3)), which is never less than that of d0 = 5: spreads differ by a third, however equal they look.
The result is replaced by the scaled inverse chi-square with the same mean and variance of its logarithm.

Two runs say so little about their own variance that other cells would decide alone: if one variant varied ten times as
much as all others, one page in eight would have a false verdict. So cells of two runs are pooled only with those of the
same variants at other loads, and d0 is at most 2.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_PRIOR_FREEDOM = 5.0  # degrees of freedom: the greatest d0
MOST_PRIOR_FREEDOM_OF_TWO_RUNS = 2.0
_TWO_RUNS = 2
_LEAST_PRIOR_FREEDOM = 1.0
_DEGREES = 12  # values of d0
_REACH, _STEP = 12.0, 0.25  # of log s0², around the mean of the cells


def pooled_variances(
    variances: Sequence[float], freedom: Sequence[float], runs: Sequence[int], variants: Sequence[Hashable]
) -> list[tuple[float, float]]:
    """(variance, degrees of freedom) of each cell, `moderated` over the cells that may be pooled.

    All arguments have one element per cell: `runs` is the number of runs of its side with fewer, `variants` identifies
    what it compares. Cells of two runs are pooled only with those of the same variants.
    """
    groups: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for number, (fewest, of) in enumerate(zip(runs, variants, strict=True)):
        groups[(of,) if fewest <= _TWO_RUNS else ()].append(number)
    found: dict[int, tuple[float, float]] = {}
    for key, numbers in groups.items():
        most = MOST_PRIOR_FREEDOM_OF_TWO_RUNS if key else MOST_PRIOR_FREEDOM
        together = moderated([variances[n] for n in numbers], [freedom[n] for n in numbers], most)
        found.update(zip(numbers, together, strict=True))
    return [found[number] for number in range(len(variances))]


def moderated(
    variances: Sequence[float], freedom: Sequence[float], most: float = MOST_PRIOR_FREEDOM
) -> list[tuple[float, float]]:
    """The variance of each cell with its degrees of freedom, estimated from all cells; d0 is at most `most`.

    Variances are those of single runs, on one scale. A single cell keeps its variance, and so does one whose variance
    is 0, which was not really measured and says nothing about others.
    """
    from scipy.special import digamma, polygamma  # noqa: PLC0415 - for the reason given in bootstrap.py

    given = list(zip(map(float, variances), map(float, freedom), strict=True))
    known = [number for number, (variance, _) in enumerate(given) if variance > 0]
    if len(known) < 2:
        return given
    own, degrees = np.array([given[number] for number in known]).T[..., None, None]
    prior, weight = _degrees(most)
    middle = float(np.average(np.log(own), weights=degrees))
    location = np.exp(middle + np.arange(-_REACH, _REACH + _STEP, _STEP))[None, :, None]
    likely = _log_likelihood(own, degrees, location, prior) + np.log(weight)
    posterior = np.exp(likely - likely.max())
    posterior /= posterior.sum()
    # The logarithm of a scaled inverse chi-square variance has these two moments.
    total = prior + degrees
    level = np.log((prior * location + degrees * own) / total) + np.log(total / 2) - digamma(total / 2)
    mean = (posterior * level).sum(axis=(1, 2))
    spread = (posterior * (polygamma(1, total / 2) + level**2)).sum(axis=(1, 2)) - mean**2
    half = _inverse_trigamma(spread)
    variance = np.exp(mean - np.log(half) + digamma(half))
    for number, *found in zip(known, variance, 2 * half, strict=True):
        given[number] = float(found[0]), float(found[1])
    return given


def _degrees(most: float) -> tuple[Floats, Floats]:
    """Values of d0 and their prior weights: uniform in sqrt(trigamma(d0 / 2)), the deviation of log variances."""
    from scipy.special import polygamma  # noqa: PLC0415

    widest, narrowest = np.sqrt(polygamma(1, np.array([_LEAST_PRIOR_FREEDOM, most]) / 2))
    deviations = np.linspace(widest, narrowest, _DEGREES)
    return 2 * _inverse_trigamma(deviations**2), np.full(_DEGREES, 1 / _DEGREES)


def _log_likelihood(own: Floats, degrees: Floats, location: Floats, prior: Floats) -> Floats:
    """Joint log likelihood of all cells, shape (locations, priors).

    It is that of log s², where s² / location is F-distributed.
    """
    from scipy.special import betaln  # noqa: PLC0415

    ratio = degrees / prior * (own / location)
    found: Floats = degrees / 2 * np.log(ratio) - (degrees + prior) / 2 * np.log1p(ratio)
    total: Floats = (found - betaln(degrees / 2, prior / 2)).sum(axis=0)
    return total


def _inverse_trigamma(values: Floats) -> Floats:
    """By Newton's method on 1 / trigamma, which is convex and near linear: Smyth 2004, appendix."""
    from scipy.special import polygamma  # noqa: PLC0415

    x = 0.5 + 1 / values
    for _ in range(8):
        trigamma = polygamma(1, x)
        x = x + trigamma * (1 - trigamma / values) / polygamma(2, x)
    return x
