"""Groups of runs that are not of one kind."""

import numpy as np
import pytest
import scipy.stats
from loadstone.stats.homogeneity import p_alike, p_same_difference

TRIES = 2000


def groups(seed: int, sizes=(5, 3, 4), spreads=(1, 2, 4)) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed)
    return [
        drawn.normal(number, spread, size) for number, (size, spread) in enumerate(zip(sizes, spreads, strict=True))
    ]


def t_p(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Of two differences (or means), with the degrees of freedom of the smallest sample."""
    signs = [-1, 1][-len(one) :]
    apart = sum(sign * (mine.mean() - theirs.mean()) for sign, mine, theirs in zip(signs, one, other, strict=True))
    error = np.sqrt(sum(scipy.stats.sem(values) ** 2 for values in (*one, *other)))
    return float(2 * scipy.stats.t.sf(abs(apart / error), min(values.size for values in (*one, *other)) - 1))


@pytest.mark.parametrize("seed", range(5))
def test_two_groups_are_compared_without_pooling(seed):
    one, other = groups(seed, (5, 5), (1, 4))
    assert p_alike([one, other]) == pytest.approx(t_p([one], [other]), rel=1e-9)
    # As far apart as by Welch, only with fewer degrees of freedom.
    welch = scipy.stats.ttest_ind(one, other, equal_var=False)
    assert p_alike([one, other]) == pytest.approx(2 * scipy.stats.t.sf(abs(welch.statistic), 4), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_several_groups_are_compared_two_by_two(seed):
    a, b, c = groups(seed)
    least = min(t_p([one], [other]) for one, other in ((a, b), (a, c), (b, c)))
    assert p_alike([a, b, c]) == pytest.approx(min(1, 3 * least), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_differences(seed):
    (a, b), (c, d) = groups(seed, (5, 4), (1, 2)), groups(seed + 100, (6, 3), (3, 1))
    assert p_same_difference([(a, b), (c, d)]) == pytest.approx(t_p([a, b], [c, d]), rel=1e-9)


def test_nothing_to_tell_it_by():
    assert p_alike([]) is None
    assert p_alike(groups(1)[:1]) is None
    assert p_alike([np.array([1.0]), np.array([2.0])]) is None


@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_runs_that_all_agree_differ_whatever_the_rounding_of_their_logarithms(size):
    for level in range(1, 60):
        same, tenfold = (np.log(np.full(size, factor * level * 1e6)) for factor in (1, 10))
        noisy = same + np.spacing(same) * np.arange(size)  # by an ulp each
        assert p_alike([same, tenfold]) == p_alike([noisy, tenfold]) == 0
        assert p_alike([same, noisy]) is p_alike([same, same]) is None
        assert p_same_difference([(same, same), (same, tenfold)]) == 0
        assert p_same_difference([(same, tenfold), (noisy, tenfold)]) is None


def test_a_group_that_tells_no_spread_is_taken_to_vary_as_the_one_that_varies_most():
    steady, unsteady = groups(3, (6, 4), (1, 5))
    by = np.sqrt(unsteady.var(ddof=1) * (1 + 1 / 4))
    expected = 2 * scipy.stats.t.sf(abs(unsteady.mean() - 9) / by, 3)
    assert p_alike([unsteady, np.array([9.0])]) == pytest.approx(expected, rel=1e-9)
    tied = np.sqrt(unsteady.var(ddof=1) * (1 / 5 + 1 / 4))
    expected = 2 * scipy.stats.t.sf(abs(unsteady.mean() - 9) / tied, 3)
    assert p_alike([unsteady, np.full(5, 9.0)]) == pytest.approx(expected, rel=1e-9)
    assert p_alike([steady, unsteady, np.array([9.0])]) is not None


@pytest.mark.parametrize(
    ("sizes", "spreads"),
    [
        ((5, 5), (1, 1)),
        ((20, 3), (1, 10)),
        ((5, 1), (1, 1)),
        ((2, 5, 5), (10, 1, 1)),
        ((3, 20, 20), (5, 1, 1)),
        ((2,) * 10, (1,) * 10),
    ],
)
def test_equal_groups_seldom_seem_to_differ_however_unlike_they_are(sizes, spreads):
    drawn = np.random.default_rng(7)

    def tried(difference: bool) -> float:
        sides = [(drawn.normal(size=size), drawn.normal(0, by, size)) for size, by in zip(sizes, spreads, strict=True)]
        return p_same_difference(sides) if difference else p_alike([other for _, other in sides])

    for difference in (False, True):
        found = np.array([tried(difference) for _ in range(TRIES)])
        for level in (0.05, 0.005):
            # The 99.9 % quantile of a binomial distribution.
            assert (found <= level).sum() <= scipy.stats.binom.ppf(0.999, TRIES, level)
