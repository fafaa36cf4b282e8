"""P values of many tests at once, adjusted so that with a given confidence not one of them is wrong.

The same as ``statsmodels.stats.multitest``, which loads pandas (jobs do without).
"""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """However the tests depend on each other.

    Holm 1979, *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 6(2).
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return [float(each) for each in adjusted]


def hommel(p_values: Sequence[float]) -> list[float]:
    """Where tests depend on each other positively, as figures of the same runs do; sharper than Holm's.

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
    found = np.empty_like(adjusted)
    found[order] = adjusted
    return [float(each) for each in found]


def undecided(p_values: Sequence[float], alpha: float) -> int:
    """How many of the tests may all be of no difference, as far as `hommel` tells; at least 1.

    A p value is sure where this many times it is at most `alpha`: what a test must reach while all others stay as they
    are. Goeman, Meijer, Krebs & Solari 2019, *Simultaneous control of all false discovery proportions in large-scale
    multiple hypothesis testing*, Biometrika 106(4), lemma 2.
    """
    p = np.sort(np.asarray(p_values, np.float64))
    n = len(p)
    for size in range(n, 0, -1):
        if np.all(size * p[n - size :] > alpha * np.arange(1, size + 1)):
            return size
    return 1
