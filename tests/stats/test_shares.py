"""Shares of requests that failed, in two campaigns: seldom wrong however few failed, and able to see what changed."""

import math

import numpy as np
import pytest
from loadstone import config
from loadstone.analysis import gate
from loadstone.analysis.gate_outcome import INCONCLUSIVE, NO_WORSE, WORSE, Finding, Options
from loadstone.stats.shares import Difference, Share
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
            found = Difference(*sides)
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
    found = Difference(*(Share(each.mean(), each.std(), 5, 500) for each in of_runs))
    assert found.p_above(allowed) == pytest.approx(stats.t.sf(t, 8), rel=1e-4)
    assert found.p_below(allowed) == pytest.approx(stats.t.cdf(t, 8), rel=1e-4)


def test_the_interval_holds_what_the_tests_do_not_refuse():
    found = Difference(Share(0.01, 0.005, 5, 500), Share(0.03, 0.02, 5, 500))
    low, high = found.bounds(0.025, 0.025)
    assert low < found.shift < high
    assert found.p_above(low) == pytest.approx(0.025) and found.p_below(high) == pytest.approx(0.025)
    none = Difference(Share(0.0, 0.0, 3, 300), Share(0.0, 0.0, 3, 300)).bounds(0.025, 0.025)
    assert none[0] == pytest.approx(-none[1]) and 0.01 < none[1] < 0.1
    all_failed = Difference(Share(0.0, 0.0, 3, 300), Share(1.0, 0.0, 3, 300)).bounds(0.025, 0.025)
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
    found = Difference(earlier, later, between)
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
    assert Difference(*sides).p_above(0.005) < 0.01
    assert Difference(*sides, between=(0.01**2, 7.0)).p_above(0.005) > 0.1


def test_a_share_of_nobody_knows_how_many_requests_is_not_compared():
    key = ("demo", "here", "2026-02-01T12:00:00+00:00")
    cells = [cell(at, np.zeros(3), 100) | {"n_requests": None} for at in ("2026-01-01T12:00:00+00:00", key[2])]
    declared = {"statistics": ["error_fraction"]}
    chosen = options(**declared)
    (found,) = gate.judge_cells(cells, [], {key}, chosen)
    assert found.verdict == INCONCLUSIVE and "of how many requests" in found.why
