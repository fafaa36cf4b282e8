"""Shares of failures that campaigns tell alike, or not."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from loadstone.stats.same_shares import Side, p_same_share, p_same_share_difference

TRIES = 150
RANDOM = np.random.default_rng


def side(drawn, runs: int, requests: int, share: float, clustered: float = 0.0) -> Side:
    """Runs whose own share varies by a beta distribution with this correlation within runs."""
    shares = np.full(runs, share)
    if clustered:
        beside = (1 - clustered) / clustered
        shares = drawn.beta(share * beside, (1 - share) * beside, runs)
    return Side(drawn.binomial(requests, shares) / requests, np.full(runs, float(requests)))


def test_a_variance_is_that_of_equal_shares():
    """Of runs that differ by less than chance lets them, by hand: the score test of two shares (pooled z)."""
    one, other = (Side(np.array(shares), np.full(3, 100.0)) for shares in ((0.01, 0.02, 0.03), (0.06, 0.07, 0.08)))
    pooled = 0.045
    z = (0.07 - 0.02) / np.sqrt(pooled * (1 - pooled) * 2 / 300)
    assert p_same_share([one, other]) == pytest.approx(2 * scipy.stats.t.sf(z, 2), rel=1e-9)


def test_a_difference_is_tested_where_all_campaigns_have_the_likeliest_common_one():
    """The shares of all four sides that fit best under one difference are found by brute force."""
    counts = {"a": (3, 9), "b": (6, 30)}  # of 300 requests each
    sides = {
        key: [Side(np.array([n - 1, n, n + 1]) / 3 / 100, np.full(3, 100.0)) for n in both]
        for key, both in counts.items()
    }

    def variances(apart: float) -> list[float]:
        found = []
        for one, other in counts.values():
            fit = scipy.optimize.minimize_scalar(
                lambda p, one=one, other=other: (
                    -scipy.stats.binom.logpmf(one, 300, p) - scipy.stats.binom.logpmf(other, 300, p + apart)
                ),
                bounds=(1e-9, 1 - apart - 1e-9),
                method="bounded",
                options={"xatol": 1e-12},
            )
            found.append(sum(p * (1 - p) / 300 for p in (fit.x, fit.x + apart)))
        return found

    apart = np.array([(other - one) / 300 for one, other in counts.values()])
    common = float(apart.mean())
    for _ in range(50):
        weights = 1 / np.array(variances(common))
        common = float(weights @ apart / weights.sum())
    expected = 2 * scipy.stats.t.sf(abs(np.diff(apart)[0]) / np.sqrt(sum(variances(common))), 2)
    assert p_same_share_difference(list(sides.values()), paired=False) == pytest.approx(expected, rel=1e-4)


def test_failures_in_one_campaign_alone_are_told_and_those_of_both_are_not():
    drawn = RANDOM(3)
    none, some = (side(drawn, 5, 600, share) for share in (0.0, 0.6))
    for paired in (False, True):
        assert p_same_share_difference([(none, none), (none, some)], paired=paired) < 1e-4
        assert p_same_share_difference([(none, some), (none, some)], paired=paired) == 1
        assert p_same_share_difference([(none, none), (none, none)], paired=paired) is None
    assert p_same_share([none, some]) < 1e-4
    assert p_same_share([none, none]) is p_same_share([some]) is None


def test_runs_that_fail_together_go_by_pairs():
    """Half of some blocks fails for both variants: by pairs the difference is the same, and is known to be."""
    drawn = RANDOM(4)

    def campaign(extra: float) -> tuple[Side, Side]:
        blocks = drawn.uniform(0, 0.5, 6)
        requests = np.full(6, 5000.0)
        return tuple(Side(drawn.binomial(5000, blocks + more) / 5000, requests) for more in (0, extra))

    both = [campaign(0.0), campaign(0.1)]
    assert p_same_share_difference(both, paired=True) < 0.001
    assert p_same_share_difference(both, paired=False) > 0.1


@pytest.mark.parametrize(
    ("runs", "requests", "share", "clustered"),
    [(2, 200, 0.01, 0), (3, 1000, 0.001, 0), (5, 600, 0.002, 0), (5, 1000, 0.05, 0.05), (3, 1000, 0.3, 0.02)],
)
@pytest.mark.parametrize("campaigns", [2, 4])
def test_equal_campaigns_seldom_seem_to_differ(campaigns, runs, requests, share, clustered):
    drawn = RANDOM(runs * requests)
    allowed = scipy.stats.binom.ppf(0.999, TRIES, 0.05)

    def sides() -> list[tuple[Side, Side]]:
        return [
            tuple(side(drawn, runs, requests, share * times, clustered) for times in (1, 2)) for _ in range(campaigns)
        ]

    found = [sides() for _ in range(TRIES)]
    for p in (
        [p_same_share([one for one, _ in each]) for each in found],
        [p_same_share_difference(each, paired=False) for each in found],
        [p_same_share_difference(each, paired=True) for each in found],
    ):
        assert sum(each <= 0.05 for each in p if each is not None) <= allowed


def test_a_steady_campaign_lends_an_unsteady_one_nothing():
    drawn = RANDOM(9)
    found = [p_same_share([side(drawn, 20, 1000, 0.05), side(drawn, 3, 1000, 0.05, 0.05)]) for _ in range(1000)]
    assert sum(p <= 0.05 for p in found) <= scipy.stats.binom.ppf(0.999, 1000, 0.05)
