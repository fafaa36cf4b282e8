"""Levels in short series: rarely where there are none, and found where a step is large enough."""

from dataclasses import replace

import numpy as np
import pytest
from loadstone.stats.history import Series, between_variance, levels

LEAST = float(np.log(1.05))


def simulated(random, means, runs: int, within: float, between: float) -> Series:
    """Campaigns of `runs` runs about `means`, with a deviation of runs and one between campaigns."""
    count = len(means)
    figures = means + random.normal(0, between, count)
    of_runs = figures[:, None] + random.normal(0, within, (count, runs))
    errors = of_runs.std(axis=1, ddof=1) / np.sqrt(runs)
    return Series(of_runs.mean(axis=1), errors, np.full(count, runs - 1.0))


def share_cut(count: int, runs: int, within: float, between: float, times: int = 500) -> float:
    """How often a series without any change is cut."""
    random = np.random.default_rng([count, runs])
    found = (simulated(random, np.zeros(count), runs, within, between) for _ in range(times))
    return float(np.mean([levels(series, LEAST)[-1] > 1 for series in found]))


# Nominal is 1 %; of 500 series that is 5, and chance gives up to 12 of them once in 500 times.
@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 20])
@pytest.mark.parametrize(("within", "between"), [(0.02, 0.0), (0.1, 0.0), (0.4, 0.05), (0.02, 0.05), (0.1, 0.05)])
@pytest.mark.parametrize("runs", [3, 10])
def test_a_series_without_change_is_one_level(count, runs, within, between):
    assert share_cut(count, runs, within, between) <= 0.024


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 20])
def test_campaigns_that_differ_by_a_tenth_are_seldom_levels(count):
    assert share_cut(count, 5, 0.02, 0.1) <= 0.05


def test_campaigns_that_differ_by_a_fifth_are_not_seldom_ones_as_long_as_there_are_few():
    """What is taken for granted of few campaigns is wrong then; the methods page says so."""
    assert 0.05 < share_cut(4, 10, 0.02, 0.2) < 0.2
    assert share_cut(20, 10, 0.02, 0.2) <= 0.03


# A step of so many deviations of a campaign, and how often it is found at the least.
@pytest.mark.parametrize(
    ("count", "sigmas", "share"), [(5, 8, 0.9), (8, 6, 0.95), (10, 4, 0.8), (20, 3, 0.9), (50, 2, 0.75)]
)
def test_a_step_is_found_where_it_is(count, sigmas, share):
    random = np.random.default_rng([count, 7])
    deviation = np.hypot(0.1 / np.sqrt(5), 0.03)
    at = count // 2
    means = np.where(np.arange(count) >= at, sigmas * deviation, 0)
    times = 100 if count < 50 else 40
    found = [levels(simulated(random, means, 5, 0.1, 0.03), LEAST) for _ in range(times)]
    assert np.mean([numbers[-1] == 2 for numbers in found]) >= share
    steps = [int(np.argmax(numbers == 2)) for numbers in found if numbers[-1] == 2]
    assert np.mean([abs(step - at) <= 1 for step in steps]) >= share


def test_there_and_back_is_found_in_the_middle():
    random = np.random.default_rng(3)
    means = np.where((np.arange(12) >= 5) & (np.arange(12) < 8), 0.5, 0.0)
    found = [levels(simulated(random, means, 5, 0.1, 0.03), LEAST).tolist() for _ in range(50)]
    assert found.count([1] * 5 + [2] * 3 + [3] * 4) >= 45


def test_several_steps():
    random = np.random.default_rng(4)
    means = np.repeat([0.0, 0.6, 1.2, 0.4], 6)
    found = [levels(simulated(random, means, 5, 0.1, 0.03), LEAST).tolist() for _ in range(30)]
    assert found.count(np.repeat([1, 2, 3, 4], 6).tolist()) >= 27


def test_a_step_below_the_least_is_none_however_sure():
    series = Series(np.repeat([0.0, 0.04], 10), np.full(20, 1e-4), np.full(20, 9.0))
    assert levels(series, LEAST).tolist() == [1] * 20
    assert levels(series, 0.03).tolist() == [1] * 10 + [2] * 10


def test_single_runs_need_four_campaigns():
    unknown = np.full(3, np.nan)
    assert levels(Series(np.array([0.0, 0.0, 3.0]), unknown, np.zeros(3)), LEAST).tolist() == [1, 1, 1]
    values = np.array([0.0, 0.01, 0.0, -0.01, 3.0, 3.01, 2.99, 3.0])
    assert levels(Series(values, np.full(8, np.nan), np.zeros(8)), LEAST).tolist() == [1] * 4 + [2] * 4


def test_one_run_among_others_has_their_error():
    errors = np.array([0.02, 0.02, np.nan, 0.02, 0.02, 0.02])
    values = np.array([0.0, 0.0, 0.9, 0.0, 0.0, 0.0])
    freedom = np.array([9.0, 9, 0, 9, 9, 9])
    assert levels(Series(values, errors, freedom), LEAST).tolist() == [1, 1, 2, 3, 3, 3]
    # Where runs scatter so much, a single one may be as far off as that.
    assert levels(Series(values, errors * 15, freedom), LEAST).tolist() == [1] * 6


def test_figures_that_are_all_equal_are_one_level():
    assert levels(Series(np.zeros(5), np.zeros(5), np.full(5, 2.0)), 0.01).tolist() == [1] * 5
    assert levels(Series(np.zeros(1), np.full(1, np.nan), np.zeros(1)), 0.01).tolist() == [1]


def test_the_variance_between_campaigns_comes_back():
    random = np.random.default_rng(5)
    found = [between_variance(simulated(random, np.zeros(10), 5, 0.1, 0.2))[0] for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.04, rel=0.1)
    assert between_variance(simulated(random, np.zeros(3), 5, 0.1, 0.2)) == (0.0, 0.0)


def test_campaigns_of_all_levels_tell_it_together():
    """As an analysis of variance does, whose mean square within groups holds the errors of runs once."""
    random = np.random.default_rng(6)
    means, numbers = np.repeat([0.0, 0.5, 0.1], [5, 1, 4]), np.repeat([1, 2, 3], [5, 1, 4])
    found = [between_variance(simulated(random, means, 5, 0.1, 0.2), numbers) for _ in range(400)]
    assert np.mean([variance for variance, _ in found]) == pytest.approx(0.04, rel=0.1)
    assert {freedom for _, freedom in found} == {7}
    series = simulated(random, means, 5, 0.1, 0.2)
    within = sum(((part - part.mean()) ** 2).sum() for part in (series.values[:5], series.values[6:]))
    exact = replace(series, errors=np.zeros(10))
    assert between_variance(exact, numbers)[0] == pytest.approx(within / 7)
    assert between_variance(exact.part(3, 8), numbers[3:8]) == (0.0, 0.0)
