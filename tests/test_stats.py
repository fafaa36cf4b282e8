"""Intervals of a cell's figures: what they cover, how wide they are, when there are none."""

import numpy as np
import pytest
from loadstone import stats
from scipy.signal import lfilter
from scipy.special import stdtrit

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SPREAD_OF_RUNS, SPREAD_WITHIN, PERSISTENCE = 0.15, 0.4, 0.8


def simulate(generator: np.random.Generator, runs: int, requests: int) -> list[np.ndarray]:
    """Runs that differ from each other, of requests that resemble their predecessors: log-normal, AR(1) in the log."""
    noise = generator.normal(size=(runs, requests)) * np.sqrt(1 - PERSISTENCE**2)
    within = lfilter([1], [1, -PERSISTENCE], noise, axis=1)
    between = generator.normal(size=(runs, 1))
    return list(np.exp(15 + SPREAD_OF_RUNS * between + SPREAD_WITHIN * within).astype(np.int64))


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    """The true figures: all of it is log-normal, with both variances."""
    total = np.hypot(SPREAD_OF_RUNS, SPREAD_WITHIN)
    normal = {"p50": 0.0, "p90": 1.2815515655, "p99": 2.3263478740}
    return {name: np.exp(15 + z * total) for name, z in normal.items()} | {"mean": np.exp(15 + total**2 / 2)}


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_intervals_cover_the_truth_and_are_not_absurdly_wide(runs, truth):
    generator = np.random.default_rng(runs)
    simulations = 250
    hits, ratios = dict.fromkeys(truth, 0), []
    for number in range(simulations):
        found = stats.intervals(simulate(generator, runs, 1000), PERCENTILES, number)
        for name, value in truth.items():
            hits[name] += found[name][0] <= value <= found[name][1]
        ratios.append(found["p50"][1] / found["p50"][0])
    # What Student's t would give if each run's true median were known.
    ideal = np.exp(2 * stdtrit(runs - 1, 0.975) * SPREAD_OF_RUNS / np.sqrt(runs))
    assert {name: count / simulations >= 0.93 for name, count in hits.items()} == dict.fromkeys(truth, True), hits
    assert np.median(ratios) < ideal**1.5


def test_requests_taken_as_independent_would_be_far_too_sure(truth):
    """The reason for all this: with many requests, the interval stays as wide as the runs differ."""
    generator = np.random.default_rng(1)
    short = stats.intervals(simulate(generator, 5, 200), PERCENTILES, 0)["p50"]
    long = stats.intervals(simulate(generator, 5, 20_000), PERCENTILES, 0)["p50"]
    assert long[1] / long[0] > (short[1] / short[0]) ** 0.3


def test_an_interval_contains_its_figure_and_scales_with_the_unit():
    runs = simulate(np.random.default_rng(2), 4, 500)
    found = stats.intervals(runs, PERCENTILES, 3)
    pooled = np.concatenate(runs)
    for name, probability in PERCENTILES.items():
        assert found[name][0] < np.quantile(pooled, probability) < found[name][1]
    scaled = stats.intervals([run * 1000 for run in runs], PERCENTILES, 3)
    assert scaled["p99"] == pytest.approx([bound * 1000 for bound in found["p99"]], rel=0.01)


def test_the_same_seed_gives_the_same_interval():
    runs = simulate(np.random.default_rng(2), 3, 500)
    first = stats.intervals(runs, PERCENTILES, stats.seed("a", 1.0))
    assert stats.intervals(runs, PERCENTILES, stats.seed("a", 1.0)) == first
    assert stats.intervals(runs, PERCENTILES, stats.seed("a", 2.0)) != first


def test_equal_runs_without_spread_have_an_interval_of_no_width():
    runs = [np.full(100, 5_000_000)] * 3
    assert stats.intervals(runs, PERCENTILES, 0)["p50"] == pytest.approx((5e6, 5e6), rel=1e-6)


@pytest.mark.parametrize("runs", [[], [np.arange(1, 100)], [np.arange(1, 100), np.array([], dtype=np.int64)]])
def test_fewer_than_two_runs_have_no_interval(runs):
    assert stats.intervals(runs, PERCENTILES, 0) == {}


def test_runs_of_few_and_of_unequal_requests():
    found = stats.intervals([np.array([3, 5]), np.arange(1, 4000), np.array([7])], {"p50": 0.5}, 0)
    assert found["p50"][0] < found["p50"][1]


def test_latencies_of_zero_have_no_interval_on_a_log_scale():
    assert stats.intervals([np.zeros(50, np.int64)] * 2, {"p50": 0.5}, 0) == {}


@pytest.mark.parametrize(
    ("requests", "probability", "expected"),
    [(20, 0.5, True), (19, 0.5, False), (100, 0.9, True), (99, 0.9, False), (1000, 0.99, True), (999, 0.99, False)],
)
def test_a_percentile_takes_ten_requests_beyond_it(requests, probability, expected):
    assert stats.estimable(requests, probability) is expected
