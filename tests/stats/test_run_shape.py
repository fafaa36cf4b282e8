"""Runs of known shape are recognised, flat ones are left alone, and so are those of coarse clocks."""

from collections import Counter
from itertools import combinations

import diptest
import numpy as np
import pytest
from loadstone.stats import change_points, run_shape
from loadstone.stats.change_points import divisions, level_model, linear_trend
from loadstone.stats.run_shape import RunShape, classify, dip, dip_p_value, dip_statistic, mser, strongest_period
from scipy.stats import linregress
from stats import simulated
from stats.simulated import SHAPES, Simulated, autocorrelated, labelled, noise

OF_EACH = 60
MS = 1e6


def ns(logs: np.ndarray, typical_ns: float = 10 * MS) -> np.ndarray:
    return np.round(typical_ns * np.exp(logs)).astype(np.int64)


@pytest.fixture(scope="module")
def judged() -> list[tuple[Simulated, RunShape]]:
    """480 runs: 8 shapes, 60 to 1,000 requests per second, 600 to 10,000 requests."""
    return [(run, classify(run.latencies_ns, 1, seed=1)) for run in labelled(seed=20, of_each=OF_EACH)]


@pytest.mark.parametrize("seed", range(10))
def test_divisions_have_the_least_squares_of_all(seed) -> None:
    random = np.random.default_rng(seed)
    series = 15 + np.repeat(random.normal(size=3), 6) + 0.3 * random.normal(size=18)

    def squares(places: tuple[int, ...]) -> float:
        return sum(((level - level.mean()) ** 2).sum() for level in np.split(series, places))

    for changes, found in enumerate(divisions(series, 4, 3), 1):
        every = [
            places for places in combinations(range(3, 16), changes) if np.diff([0, *places, series.size]).min() >= 3
        ]
        assert found == min(every, key=squares)


def test_shapes_are_recognised(judged) -> None:
    right = Counter(run.shape for run, found in judged if found.shape == run.shape)
    missed = [(run.shape, run.rate, run.latencies_ns.size, found) for run, found in judged if found.shape != run.shape]
    assert set(right) == {*SHAPES, "too few"}
    assert min(right.values()) >= 0.95 * OF_EACH, missed
    assert sum(right.values()) >= 0.95 * len(judged)


def test_little_else_is_found_beside_the_shape(judged) -> None:
    """A steep drift is no warm-up, a change of level no two modes, a sine neither."""
    alone = [found.shapes == (run.shape,) for run, found in judged]
    assert np.mean(alone) >= 0.95


def test_the_evidence_says_where_and_how_much(judged) -> None:
    for run, found in judged:
        if run.shape == found.shape == "drifting up":
            assert 0.3 < found.trend_share < 4.5 and found.half_ratio < 1
        elif run.shape == found.shape == "drifting down":
            assert found.trend_share < -0.2 and found.half_ratio > 1
        elif run.shape == found.shape == "still warming up":
            assert found.warmup_share > 0.05 and found.half_ratio > 1


def test_a_change_of_level_is_placed() -> None:
    rng = np.random.default_rng(3)
    logs = 0.2 * rng.normal(size=4000) + np.log(2) * (np.arange(4000) >= 2600)
    found = classify(ns(logs), 1, seed=1)
    assert found.shape == "changing level"
    (change,) = found.change_seqs
    assert abs(change - 2600) <= 4000 / 64, "within a block"
    assert np.array(found.levels_ns) == pytest.approx([10 * MS, 20 * MS], rel=0.05)


@pytest.mark.parametrize("requests", [17.3, 60, 250])
def test_a_period_is_measured(requests: float) -> None:
    rng = np.random.default_rng(4)
    seq = np.arange(3000)
    for wave in (0.5 * np.sin(2 * np.pi * seq / requests), 1.0 * (seq % requests < 0.2 * requests)):
        found = classify(ns(0.2 * autocorrelated(rng, 3000, 0.5) + wave), 1, seed=1)
        assert found.shape == "periodic"
        assert found.period_requests == pytest.approx(requests, rel=0.02)
        assert 0.7 < found.period_share < 2.5


def test_a_drift_with_two_modes_is_both() -> None:
    rng = np.random.default_rng(5)
    logs = 0.1 * rng.normal(size=4000) + np.log(2) * np.linspace(0, 1, 4000) + np.log(4) * (rng.random(4000) < 0.4)
    assert classify(ns(logs), 1, seed=1).shapes == ("drifting up", "several modes")


@pytest.mark.parametrize(("n", "phi"), [(600, 0.9), (600, 0.97), (4000, 0.97), (4000, 0.99)])
def test_flat_runs_that_wander_are_not_called_drifting(n: int, phi: float) -> None:
    """Noise with a memory of up to a tenth of the run: no more than a nominal 5 % of false trends."""
    rng = np.random.default_rng(6)
    trials = 300
    shapes = Counter(
        shape for _ in range(trials) for shape in classify(ns(0.3 * autocorrelated(rng, n, phi)), 1, 1).shapes
    )
    moving = sum(shapes[each] for each in (run_shape.DRIFTING_UP, run_shape.DRIFTING_DOWN, run_shape.WARMING_UP))
    assert moving <= 0.05 * trials
    assert shapes[run_shape.FLAT] >= 0.9 * trials


@pytest.mark.parametrize("typical_ms", [1, 2, 5, 20])
@pytest.mark.parametrize("told", [True, False])
def test_a_clock_of_whole_milliseconds_makes_no_modes(typical_ms: int, told: bool) -> None:
    """As Artillery's: most requests take 1 to 3 of its ticks. It is noticed where nobody says it."""
    rng = np.random.default_rng(7)
    for n in (600, 2000, 6000):
        coarse = np.round(ns(noise(rng, n), typical_ms * MS) / MS).astype(np.int64) * 10**6
        found = classify(coarse, MS if told else None, seed=1)
        assert found.shape == "flat", (n, found)


def test_two_modes_are_seen_through_a_coarse_clock() -> None:
    rng = np.random.default_rng(8)
    latencies_ns = ns(0.15 * rng.normal(size=2000) + np.log(3) * (rng.random(2000) < 0.5), 4 * MS)
    assert classify(np.round(latencies_ns / MS).astype(np.int64) * 10**6, MS, seed=1).shape == "several modes"


def test_a_small_effect_is_no_shape() -> None:
    """However sure it is: a tenth more over a run, levels a tenth apart."""
    rng = np.random.default_rng(9)
    u = np.arange(10_000) / 10_000
    for effect in (np.log(1.1) * u, np.log(1.1) * (u > 0.5), 0.04 * np.sin(2 * np.pi * 10 * u)):
        found = classify(ns(0.05 * rng.normal(size=u.size) + effect), 1, seed=1)
        assert found.shapes == ("flat",), found


@pytest.mark.parametrize(("time", "shape"), [(0.03, run_shape.FLAT), (0.28, run_shape.DRIFTING_UP)])
def test_a_fast_start_is_no_drift_unless_it_moves_the_mean(time: float, shape: str) -> None:
    """As when caches are still empty of work: a third less at first, for a short time or for long."""
    n = 4000
    u, random = np.arange(n) / n, np.random.default_rng(7)
    logs = np.log(5e6) - 0.4 * np.exp(-u / time) + 0.1 * random.normal(size=n)
    found = run_shape.classify(np.exp(logs).astype(np.int64), None, 1)
    assert found.shape == shape and found.warmup_share == 0
    assert (found.change_share is None) == (shape == run_shape.FLAT)


def test_the_change_of_a_drift_is_that_of_the_curve_that_fits_it() -> None:
    n = 4000
    logs = np.log(5e6) - 0.7 * np.exp(-np.arange(n) / n / 0.12) + 0.1 * np.random.default_rng(7).normal(size=n)
    found = run_shape.classify(np.exp(logs).astype(np.int64), None, 1)
    assert found.shape == run_shape.DRIFTING_UP
    first, last = (0.7 * np.exp(-u / 0.12) for u in (1 / 128, 127 / 128))  # middles of the first and the last block
    assert found.change_share == pytest.approx(np.expm1(first - last), rel=0.05)
    assert found.trend_share < 0.95 * found.change_share, "that of a straight line"


def test_the_change_of_a_straight_drift_is_that_of_the_line() -> None:
    n = 4000
    logs = np.log(5e6) + np.log(2) * np.arange(n) / n + 0.1 * np.random.default_rng(8).normal(size=n)
    found = run_shape.classify(np.exp(logs).astype(np.int64), None, 1)
    assert found.shape == run_shape.DRIFTING_UP
    assert found.change_share == pytest.approx(found.trend_share, rel=1e-6) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("late", [False, True])
def test_a_burst_that_outweighs_the_other_half_is_not_flat(late: bool) -> None:
    """As when requests queue up for a while: noise that wanders explains it as well as a level would."""
    u, random = np.arange(1500) / 1500, np.random.default_rng(11)
    burst = np.log(200) * np.exp(-(((u - 0.25) / 0.1) ** 2))
    logs = burst + 0.8 * autocorrelated(random, 1500, 0.97)
    latencies_ns = ns(logs[::-1] if late else logs, MS)
    found = classify(latencies_ns, 1, seed=1)
    first, second = latencies_ns[:750].mean(), latencies_ns[750:].mean()
    assert found.half_ratio == pytest.approx(first / second) and max(first / second, second / first) > 5
    assert found.shape == run_shape.UNEVEN and found.shape in run_shape.UNSETTLED


def test_halves_are_hardly_ever_uneven_by_chance() -> None:
    """Of runs whose level does nothing, with noise, periods and modes of all kinds, or with a memory of a tenth."""
    rng = np.random.default_rng(12)
    steady = [run.latencies_ns for run in labelled(21, OF_EACH) if run.shape in ("flat", "periodic", "several modes")]
    wandering = [ns(0.3 * autocorrelated(rng, n, phi)) for n, phi in ((600, 0.97), (4000, 0.99)) for _ in range(200)]
    for latencies_ns in steady + wandering:
        assert run_shape.UNEVEN not in classify(latencies_ns, 1, seed=1).shapes


def test_pauses_are_no_change_of_level() -> None:
    """Half a second in which nothing is answered, twice in ten seconds."""
    rng = np.random.default_rng(10)
    latencies_ns = ns(0.2 * rng.normal(size=2000), 5 * MS)
    for start in (400, 1500):
        latencies_ns[start : start + 100] += np.linspace(500 * MS, 0, 100).astype(np.int64)
    assert classify(latencies_ns, 1, seed=1).shape == "flat"


def test_odd_runs_are_judged_without_complaint() -> None:
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for latencies_ns in ([], [5], [0] * 50, [7_000_000] * 500, [-5] * 60, [1, 2**62] * 100, list(range(40))):
            found = classify(np.array(latencies_ns, dtype=np.int64), None, seed=1)
            assert (found.shape == "too few") == (len(latencies_ns) < 40)


def test_the_same_run_gives_the_same_answer() -> None:
    (run, *_) = simulated.labelled(seed=1, of_each=1)
    assert classify(run.latencies_ns, 1e5, seed=1) == classify(run.latencies_ns, 1e5, seed=1)


def test_the_trend_of_independent_values_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(size=60) + 0.02 * np.arange(60)
    slope, p = linear_trend(series)
    expected = linregress(np.arange(60), series)
    assert slope == pytest.approx(expected.slope, rel=0.05)
    assert p == pytest.approx(expected.pvalue, rel=0.2)


def test_the_trend_test_nearly_holds_its_level_under_autocorrelation() -> None:
    rng = np.random.default_rng(2)
    made = [autocorrelated(rng, 64, 0.5) for _ in range(1000)]
    found = np.mean([linear_trend(series)[1] < 0.05 for series in made])
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
        change_points.CONSTANT: np.zeros(64),
        change_points.TREND: u,
        change_points.DECAY: 2 * np.exp(-u / 0.1),
        change_points.CHANGES: 1.0 * ((u > 0.3) & (u < 0.6)),
    }
    for kind, level in made.items():
        found = level_model(level + 0.1 * autocorrelated(rng, 64, 0.4))
        assert found.kind == kind
        assert np.sqrt(np.mean((found.fitted - level) ** 2)) < 0.1


def test_levels_are_robust_and_blips_are_put_back() -> None:
    logs = np.zeros(6400)
    logs[3200:3210] = 9.0
    assert change_points.block_levels(logs, change_points.block_bounds(6400)).max() == 0.0
    series = 0.01 * np.random.default_rng(5).normal(size=64)
    series[[20, 21, 40]] += 5
    series[50:] += 1
    cleaned = change_points.without_blips(series)
    assert cleaned[[20, 21, 40]].max() < 0.1 and cleaned[50:].min() > 0.9


def test_the_period_test_holds_its_level() -> None:
    rng = np.random.default_rng(6)
    for phi in (0.0, 0.6, 0.95):
        p_values = np.array([strongest_period(autocorrelated(rng, 1000, phi)).p for _ in range(200)])
        assert np.mean(p_values < 0.01) < 0.05, phi


def test_the_dip_is_that_of_another_implementation() -> None:
    rng = np.random.default_rng(8)
    for _ in range(300):
        n = int(rng.integers(4, 400))
        one = rng.normal(size=n)
        for values in (one, rng.exponential(size=n), np.where(rng.random(n) < 0.5, one, one + 4)):
            assert dip_statistic(values) == pytest.approx(diptest.dipstat(values), abs=1e-12)
    assert dip_statistic(np.repeat([1.0, 2.0], 50)) == 0.25
    assert dip_statistic(np.arange(100.0)) == pytest.approx(1 / 200)


@pytest.mark.parametrize("n", [50, 130, 800, 3000])
def test_the_p_value_of_the_dip_of_uniform_values_is_uniform(n: int) -> None:
    rng = np.random.default_rng(n)
    values = np.array([dip_p_value(dip_statistic(rng.random(n)), n) for _ in range(1500)])
    for share in (0.5, 0.1, 0.02):
        assert abs(np.mean(values < share) - share) < 4 * np.sqrt(share * (1 - share) / 1500)
    for apart in np.linspace(0, 3.2, 30):
        values = rng.normal(size=n) + apart * (rng.random(n) < 0.5)
        assert dip_p_value(dip_statistic(values), n) == pytest.approx(diptest.diptest(values)[1], abs=0.02, rel=0.05)


def test_the_dip_of_a_run_with_memory_is_judged_by_its_independent_values() -> None:
    rng = np.random.default_rng(7)
    p_values = np.array([dip(0.3 * autocorrelated(rng, 8000, 0.9))[1] for _ in range(100)])
    assert np.mean(p_values < 0.05) <= 0.05
    assert dip(np.zeros(20)) is None
