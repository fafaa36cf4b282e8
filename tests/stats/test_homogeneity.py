"""Groups of runs that are not of one kind."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
import statsmodels.formula.api as smf
from loadstone.stats.homogeneity import p_alike, p_same_difference

SIZES = (5, 3, 4)


def groups(seed: int, sizes=SIZES) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed)
    return [drawn.normal(number / 2, 1, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize("seed", range(5))
def test_one_way(seed):
    assert p_alike(groups(seed)) == pytest.approx(scipy.stats.f_oneway(*groups(seed)).pvalue, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_interaction(seed):
    """As statsmodels has it by comparing both models."""
    sides = groups(seed), groups(seed + 100, (4, 6, 2))
    rows = [
        {"value": value, "side": side, "group": group}
        for side, found in enumerate(sides)
        for group, values in enumerate(found)
        for value in values
    ]
    full, additive = (smf.ols(f"value ~ C(side) {sign} C(group)", pd.DataFrame(rows)).fit() for sign in "*+")
    expected = sm.stats.anova_lm(additive, full)["Pr(>F)"].iloc[1]
    assert p_same_difference(list(zip(*sides, strict=True))) == pytest.approx(expected, rel=1e-9)


def test_nothing_to_tell_it_by():
    assert p_alike(groups(1)[:1]) is None
    assert p_alike([np.array([1.0]), np.array([2.0])]) is None
    assert p_alike([np.array([1.0, 1.0]), np.array([2.0, 2.0])]) is None


def test_equal_groups_seldom_seem_to_differ():
    drawn = np.random.default_rng(7)
    found = [p_alike([drawn.normal(size=5), drawn.normal(size=3)]) for _ in range(4000)]
    # The 0.1 % quantiles of a binomial distribution on both sides.
    low, high = scipy.stats.binom.ppf([0.001, 0.999], 4000, 0.05)
    assert low <= sum(p < 0.05 for p in found if p is not None) <= high
