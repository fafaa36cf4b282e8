"""Shares of requests that failed, in two campaigns: seldom wrong however few failed, and able to see what changed."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from loadstone import config
from loadstone.analysis import gate
from loadstone.analysis.gate_outcome import INCONCLUSIVE, NO_WORSE, WORSE, Finding, Options
from loadstone.stats.shares import (
    Share,
    ShareDifference,
    Side,
    p_equal_differences,
    p_equal_means,
    p_equal_share_differences,
    p_equal_shares,
)
from scipy import optimize, stats
from support.simulated import history_cell

# Runs of the earlier and the later campaign, requests of each, and their variance as a multiple of the binomial's.
GRID = [
    (3, 3, 50, 1.0),
    (3, 3, 1000, 1.0),
    (5, 5, 100, 1.0),
    (5, 5, 100, 3.0),
    (10, 10, 50, 2.0),
    (10, 10, 100, 1.0),
    (10, 3, 100, 3.0),
    (3, 10, 100, 2.0),
]
TIMES = 400
# What is nominal, 5 %, and what comes by chance beyond it once in 500 times in so many tries.
MOST = stats.binom.isf(0.002, TIMES, 0.05) / TIMES


def options(**declared) -> Options:
    checked = config.check({"archive": "a", "tables": "t/t", "reports": "r", "gate": declared})
    return Options.from_config(checked["gate"])


def failed(generator, p: float, runs: int, requests: int, dispersion: float) -> np.ndarray:
    """The share of each run, beta-binomial where runs differ by more than chance."""
    if p > 0 and dispersion > 1:
        rho = (dispersion - 1) / (requests - 1)
        p = generator.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, runs)
    return generator.binomial(requests, p, runs) / requests


def cell(timestamp: str, shares: np.ndarray, requests: int) -> dict:
    figures = {"error_fraction": shares.mean(), "error_fraction_std": shares.std()}
    return history_cell(timestamp) | figures | {"n_runs": len(shares), "n_requests": requests * len(shares)}


def judged(earlier: np.ndarray, later: np.ndarray, requests: int, allowed: float) -> Finding:
    declared = {"statistics": ["error_fraction"], "error_fraction": allowed}
    chosen = options(**declared)
    times = "2026-01-01T12:00:00+00:00", "2026-02-01T12:00:00+00:00"
    cells = [cell(at, of, requests) for at, of in zip(times, (earlier, later), strict=True)]
    (found,) = gate.judge_cells(cells, [], {("demo", "here", times[1])}, chosen)
    return found


@pytest.mark.parametrize(("before", "after", "requests", "dispersion"), GRID)
@pytest.mark.parametrize("allowed", [0.0, 0.01, 0.05])
def test_a_share_that_rose_by_just_what_is_allowed_is_seldom_called_worse_or_no_worse(
    before, after, requests, dispersion, allowed
):
    generator = np.random.default_rng([before, after, requests, round(1000 * allowed)])
    for p in (0.0, 0.01, 0.2) if allowed else (0.005, 0.05):
        verdicts = []
        for _ in range(TIMES):
            earlier = failed(generator, p, before, requests, dispersion)
            later = failed(generator, p + allowed, after, requests, dispersion)
            sides = (Share(each.mean(), each.std(), each.size, requests * each.size) for each in (earlier, later))
            found = ShareDifference(*sides)
            verdicts.append((found.p_above(allowed) < 0.05, found.p_below(allowed) < 0.05))
        assert np.mean(verdicts, axis=0).max() <= MOST, (p, np.mean(verdicts, axis=0))


def test_the_gate_asks_that_test():
    """Of five runs of a hundred requests where one in a hundred more fails: 10 % were called no worse before."""
    generator = np.random.default_rng(5)
    found = [judged(np.zeros(5), failed(generator, 0.01, 5, 100, 1.0), 100, 0.01).verdict for _ in range(TIMES)]
    assert found.count(NO_WORSE) / TIMES <= MOST and found.count(WORSE) / TIMES <= MOST


def test_what_rose_is_found_and_what_did_not_is_no_worse():
    generator = np.random.default_rng(6)
    rose = [judged(*(failed(generator, p, 5, 1000, 2.0) for p in (0.01, 0.05)), 1000, 0.01) for _ in range(100)]
    assert [each.verdict for each in rose].count(WORSE) >= 95
    same = [judged(*(failed(generator, p, 5, 1000, 2.0) for p in (0.002, 0.002)), 1000, 0.01) for _ in range(100)]
    assert [each.verdict for each in same].count(NO_WORSE) >= 95
    assert judged(np.zeros(3), np.zeros(3), 1000, 0.01).verdict == NO_WORSE
    assert judged(np.zeros(3), np.ones(3), 50, 0.01).verdict == WORSE


@pytest.mark.parametrize("allowed", [-0.02, 0.0, 0.01, 0.3])
def test_the_test_is_that_of_farrington_and_manning_times_the_dispersion(allowed):
    """Against the likelihood itself, maximised by another way."""
    of_runs = np.array([0, 1, 0, 2, 0]) / 100, np.array([3, 9, 1, 0, 2]) / 100
    (n, m), (p, q) = (500, 500), (each.mean() for each in of_runs)

    def unlikely(share: float) -> float:
        shares = np.array([share, share + allowed])
        return -float(stats.binom.logpmf([round(p * n), round(q * m)], [n, m], shares).sum())

    bounds = max(0, -allowed) + 1e-9, min(1, 1 - allowed) - 1e-9
    share = optimize.minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    pearson = [float(((each - each.mean()) ** 2 * 100 / each.mean() / (1 - each.mean())).sum()) for each in of_runs]
    each_times = [max(1, chi / 4, sum(pearson) / 8) for chi in pearson]
    parts = [s * (1 - s) / 500 for s in (share, share + allowed)]
    t = (q - p - allowed) / math.sqrt(sum(a * b for a, b in zip(each_times, parts, strict=True)))
    found = ShareDifference(*(Share(each.mean(), each.std(), 5, 500) for each in of_runs))
    assert found.p_above(allowed) == pytest.approx(stats.t.sf(t, 8), rel=1e-4)
    assert found.p_below(allowed) == pytest.approx(stats.t.cdf(t, 8), rel=1e-4)


def test_the_interval_holds_what_the_tests_do_not_refuse():
    found = ShareDifference(Share(0.01, 0.005, 5, 500), Share(0.03, 0.02, 5, 500))
    low, high = found.bounds(0.025, 0.025)
    assert low < found.shift < high
    assert found.p_above(low) == pytest.approx(0.025) and found.p_below(high) == pytest.approx(0.025)
    none = ShareDifference(Share(0.0, 0.0, 3, 300), Share(0.0, 0.0, 3, 300)).bounds(0.025, 0.025)
    assert none[0] == pytest.approx(-none[1]) and 0.01 < none[1] < 0.1
    all_failed = ShareDifference(Share(0.0, 0.0, 3, 300), Share(1.0, 0.0, 3, 300)).bounds(0.025, 0.025)
    assert 0.9 < all_failed[0] < 1 and all_failed[1] == 1


@pytest.mark.parametrize(
    ("earlier", "later", "between"),
    [
        (Share(0.01, 0.005, 5, 500), Share(0.03, 0.02, 5, 500), (0.0, 0.0)),
        (Share(0.01, 0.005, 5, 500), Share(0.03, 0.02, 5, 500), (0.02**2, 3.0)),
        (Share(0.0, 0.0, 3, 12), Share(0.0, 0.0, 3, 12), (0.0, 0.0)),
        (Share(0.0, 0.0, 2, 2), Share(1.0, 0.0, 2, 2), (0.0, 0.0)),
        (Share(0.9, 0.1, 3, 30), Share(0.2, 0.3, 3, 300), (0.0, 0.0)),
    ],
)
def test_no_difference_between_the_bounds_is_refused_and_every_one_outside(earlier, later, between):
    found = ShareDifference(earlier, later, between)
    low, high = found.bounds(0.01, 0.05)
    assert -1 <= low <= found.shift <= high <= 1
    for allowed in np.linspace(-1, 1, 201):
        if min(abs(allowed - low), abs(allowed - high)) > 1e-6:
            refused = found.p_above(allowed) < 0.01, found.p_below(allowed) < 0.05
            assert refused == (allowed < low, allowed > high), allowed


@pytest.mark.parametrize(("requests", "verdict"), [(300, NO_WORSE), (40, INCONCLUSIVE), (1, INCONCLUSIVE)])
def test_where_nothing_failed_the_verdict_is_what_the_interval_says(requests, verdict):
    found = judged(np.zeros(3), np.zeros(3), requests, 0.01)
    assert found.verdict == verdict and (found.high < 0.01) == (verdict == NO_WORSE)
    # With shares 0 and a, the quotient sqrt(a n / (1 - a)) is Student's with the freedom of three runs.
    squared = stats.t.isf(0.05, 2) ** 2
    assert found.high == pytest.approx(squared / (squared + 3 * requests), rel=1e-4)
    assert found.low == pytest.approx(-found.high)


def test_campaigns_that_differ_by_themselves_may():
    sides = Share(0.01, 0.002, 5, 5000), Share(0.03, 0.002, 5, 5000)
    assert ShareDifference(*sides).p_above(0.005) < 0.01
    assert ShareDifference(*sides, between=(0.01**2, 7.0)).p_above(0.005) > 0.1


def test_a_share_of_nobody_knows_how_many_requests_is_not_compared():
    key = ("demo", "here", "2026-02-01T12:00:00+00:00")
    cells = [cell(at, np.zeros(3), 100) | {"n_requests": None} for at in ("2026-01-01T12:00:00+00:00", key[2])]
    declared = {"statistics": ["error_fraction"]}
    chosen = options(**declared)
    (found,) = gate.judge_cells(cells, [], {key}, chosen)
    assert found.verdict == INCONCLUSIVE and "how many requests" in found.why


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
    assert p_equal_means([one, other]) == pytest.approx(t_p([one], [other]), rel=1e-9)
    # As far apart as by Welch, only with fewer degrees of freedom.
    welch = scipy.stats.ttest_ind(one, other, equal_var=False)
    assert p_equal_means([one, other]) == pytest.approx(2 * scipy.stats.t.sf(abs(welch.statistic), 4), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_several_groups_are_compared_two_by_two(seed):
    a, b, c = groups(seed)
    least = min(t_p([one], [other]) for one, other in ((a, b), (a, c), (b, c)))
    assert p_equal_means([a, b, c]) == pytest.approx(min(1, 3 * least), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_differences(seed):
    (a, b), (c, d) = groups(seed, (5, 4), (1, 2)), groups(seed + 100, (6, 3), (3, 1))
    assert p_equal_differences([(a, b), (c, d)]) == pytest.approx(t_p([a, b], [c, d]), rel=1e-9)


def test_nothing_to_tell_it_by():
    assert p_equal_means([]) is None
    assert p_equal_means(groups(1)[:1]) is None
    assert p_equal_means([np.array([1.0]), np.array([2.0])]) is None


@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_runs_that_all_agree_differ_whatever_the_rounding_of_their_logarithms(size):
    for level in range(1, 60):
        same, tenfold = (np.log(np.full(size, factor * level * 1e6)) for factor in (1, 10))
        noisy = same + np.spacing(same) * np.arange(size)  # by an ulp each
        assert p_equal_means([same, tenfold]) == p_equal_means([noisy, tenfold]) == 0
        assert p_equal_means([same, noisy]) is p_equal_means([same, same]) is None
        assert p_equal_differences([(same, same), (same, tenfold)]) == 0
        assert p_equal_differences([(same, tenfold), (noisy, tenfold)]) is None


def test_a_group_that_tells_no_spread_is_taken_to_vary_as_the_one_that_varies_most():
    steady, unsteady = groups(3, (6, 4), (1, 5))
    by = np.sqrt(unsteady.var(ddof=1) * (1 + 1 / 4))
    expected = 2 * scipy.stats.t.sf(abs(unsteady.mean() - 9) / by, 3)
    assert p_equal_means([unsteady, np.array([9.0])]) == pytest.approx(expected, rel=1e-9)
    tied = np.sqrt(unsteady.var(ddof=1) * (1 / 5 + 1 / 4))
    expected = 2 * scipy.stats.t.sf(abs(unsteady.mean() - 9) / tied, 3)
    assert p_equal_means([unsteady, np.full(5, 9.0)]) == pytest.approx(expected, rel=1e-9)
    assert p_equal_means([steady, unsteady, np.array([9.0])]) is not None


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
        return p_equal_differences(sides) if difference else p_equal_means([other for _, other in sides])

    for difference in (False, True):
        found = np.array([tried(difference) for _ in range(TRIES)])
        for level in (0.05, 0.005):
            # The 99.9 % quantile of a binomial distribution.
            assert (found <= level).sum() <= scipy.stats.binom.ppf(0.999, TRIES, level)


CAMPAIGN_TRIES = 150
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
    assert p_equal_shares([one, other]) == pytest.approx(2 * scipy.stats.t.sf(z, 2), rel=1e-9)


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
    assert p_equal_share_differences(list(sides.values()), paired=False) == pytest.approx(expected, rel=1e-4)


def test_failures_in_one_campaign_alone_are_told_and_those_of_both_are_not():
    drawn = RANDOM(3)
    none, some = (side(drawn, 5, 600, share) for share in (0.0, 0.6))
    for paired in (False, True):
        assert p_equal_share_differences([(none, none), (none, some)], paired=paired) < 1e-4
        assert p_equal_share_differences([(none, some), (none, some)], paired=paired) == 1
        assert p_equal_share_differences([(none, none), (none, none)], paired=paired) is None
    assert p_equal_shares([none, some]) < 1e-4
    assert p_equal_shares([none, none]) is p_equal_shares([some]) is None


def test_runs_that_fail_together_go_by_pairs():
    """Half of some blocks fails for both variants: by pairs the difference is the same, and is known to be."""
    drawn = RANDOM(4)

    def campaign(extra: float) -> tuple[Side, Side]:
        blocks = drawn.uniform(0, 0.5, 6)
        requests = np.full(6, 5000.0)
        return tuple(Side(drawn.binomial(5000, blocks + more) / 5000, requests) for more in (0, extra))

    both = [campaign(0.0), campaign(0.1)]
    assert p_equal_share_differences(both, paired=True) < 0.001
    assert p_equal_share_differences(both, paired=False) > 0.1


@pytest.mark.parametrize(
    ("runs", "requests", "share", "clustered"),
    [(2, 200, 0.01, 0), (3, 1000, 0.001, 0), (5, 600, 0.002, 0), (5, 1000, 0.05, 0.05), (3, 1000, 0.3, 0.02)],
)
@pytest.mark.parametrize("campaigns", [2, 4])
def test_equal_campaigns_seldom_seem_to_differ(campaigns, runs, requests, share, clustered):
    drawn = RANDOM(runs * requests)
    allowed = scipy.stats.binom.ppf(0.999, CAMPAIGN_TRIES, 0.05)

    def sides() -> list[tuple[Side, Side]]:
        return [
            tuple(side(drawn, runs, requests, share * times, clustered) for times in (1, 2)) for _ in range(campaigns)
        ]

    found = [sides() for _ in range(CAMPAIGN_TRIES)]
    for p in (
        [p_equal_shares([one for one, _ in each]) for each in found],
        [p_equal_share_differences(each, paired=False) for each in found],
        [p_equal_share_differences(each, paired=True) for each in found],
    ):
        assert sum(each <= 0.05 for each in p if each is not None) <= allowed


def test_a_steady_campaign_lends_an_unsteady_one_nothing():
    drawn = RANDOM(9)
    found = [p_equal_shares([side(drawn, 20, 1000, 0.05), side(drawn, 3, 1000, 0.05, 0.05)]) for _ in range(1000)]
    assert sum(p <= 0.05 for p in found) <= scipy.stats.binom.ppf(0.999, 1000, 0.05)
