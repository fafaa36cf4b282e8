"""The parts of which a run's shape is made, against definitions and against known cases."""

import numpy as np
import pytest
from loadstone.stats import blocks, modes, period, structure
from loadstone.stats.trend import linear
from loadstone.stats.warmup import mser
from scipy.stats import linregress
from stats.simulated import autocorrelated


def test_the_trend_of_independent_values_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(size=60) + 0.02 * np.arange(60)
    slope, p = linear(series)
    expected = linregress(np.arange(60), series)
    assert slope == pytest.approx(expected.slope, rel=0.05)
    assert p == pytest.approx(expected.pvalue, rel=0.2)


def test_the_trend_test_nearly_holds_its_level_under_autocorrelation() -> None:
    rng = np.random.default_rng(2)
    made = [autocorrelated(rng, 64, 0.5) for _ in range(1000)]
    found = np.mean([linear(series)[1] < 0.05 for series in made])
    naive = np.mean([linregress(np.arange(64), series).pvalue < 0.05 for series in made])
    assert 0.02 < found < 0.08
    assert naive > 0.2


def test_the_warm_up_is_what_the_definition_says() -> None:
    rng = np.random.default_rng(3)
    latencies_ns = np.round(1e7 * (1 + 5 * np.exp(-np.arange(1000) / 60)) + 1e6 * rng.normal(size=1000)).astype(
        np.int64
    )
    means = latencies_ns.reshape(200, 5).mean(axis=1)
    errors = [means[left_out:].var() / (200 - left_out) for left_out in range(195)]
    assert mser(latencies_ns) == 5 * int(np.argmin(errors)) > 60


def test_what_never_settles_has_no_warm_up() -> None:
    assert mser(np.linspace(1e7, 1e6, 1000).astype(np.int64)) is None
    assert mser(np.arange(49)) is None, "too few to say"


def test_the_structure_of_a_series_is_the_one_it_was_made_of() -> None:
    rng = np.random.default_rng(4)
    u = (np.arange(64) + 0.5) / 64
    made = {
        structure.FLAT: np.zeros(64),
        structure.TREND: u,
        structure.DECAY: 2 * np.exp(-u / 0.1),
        structure.CHANGES: 1.0 * ((u > 0.3) & (u < 0.6)),
    }
    for kind, level in made.items():
        found = structure.find(level + 0.1 * autocorrelated(rng, 64, 0.4))
        assert found.kind == kind
        assert np.sqrt(np.mean((found.fitted - level) ** 2)) < 0.1


def test_levels_are_robust_and_blips_are_put_back() -> None:
    logs = np.zeros(6400)
    logs[3200:3210] = 9.0
    assert blocks.levels(logs, blocks.bounds(6400)).max() == 0.0
    series = 0.01 * np.random.default_rng(5).normal(size=64)
    series[[20, 21, 40]] += 5
    series[50:] += 1
    cleaned = blocks.without_blips(series)
    assert cleaned[[20, 21, 40]].max() < 0.1 and cleaned[50:].min() > 0.9


def test_the_period_test_holds_its_level() -> None:
    rng = np.random.default_rng(6)
    for phi in (0.0, 0.6, 0.95):
        p_values = np.array([period.find(autocorrelated(rng, 1000, phi)).p for _ in range(200)])
        assert np.mean(p_values < 0.01) < 0.05, phi


def test_the_dip_of_a_run_with_memory_is_judged_by_its_independent_values() -> None:
    rng = np.random.default_rng(7)
    p_values = np.array([modes.dip(0.3 * autocorrelated(rng, 8000, 0.9))[1] for _ in range(100)])
    assert np.mean(p_values < 0.05) <= 0.05
    assert modes.dip(np.zeros(20)) is None
