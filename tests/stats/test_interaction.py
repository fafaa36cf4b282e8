"""Layers of known size come back within their intervals, and interactions are found where there are any."""

import numpy as np
import pytest
from loadstone.stats import Replicates, Sample, replicate
from loadstone.stats.contrasts import contrast
from loadstone.stats.interaction import interaction, interaction_of_runs
from scipy.signal import lfilter

SIMULATED = 80
REQUESTS = 1000
PROBABILITIES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
MS = 1e6


def measure(generator: np.random.Generator, runs: np.ndarray, added_ms: float, nth: int, alike: int) -> Replicates:
    """Runs whose level in ms is given, with latencies that depend on each other, and a layer of so many ms on top."""
    samples = []
    for level in runs:
        noise = lfilter([0.8], [1, -0.6], generator.normal(0, 1, REQUESTS))
        latencies_ns = ((level * np.exp(0.25 * noise) + added_ms) * MS).astype(np.int64)
        told, failed = np.ones(REQUESTS, bool), np.zeros(REQUESTS, bool)
        samples.append(Sample(latencies_ns, told, failed, failed, told, 10.0))
    return replicate(samples, PROBABILITIES, alike, 1000 * alike + nth)


def levels(generator: np.random.Generator, runs: int) -> np.ndarray:
    return 20 * np.exp(generator.normal(0, 0.03, runs))


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
def test_injected_layers_come_back(paired):
    generator = np.random.default_rng(6)
    covered = {(added, name): [] for added in (2, 20) for name in ("mean", *PROBABILITIES)}
    errors, reaches = [], []
    for nth in range(SIMULATED):
        added, runs = (2, 20)[nth % 2], int(generator.integers(4, 11))
        below_levels = levels(generator, runs)
        # Runs of one block of a sweep resemble each other.
        own = below_levels * np.exp(generator.normal(0, 0.02, runs)) if paired else levels(generator, runs)
        below = measure(generator, below_levels, 0, 0, nth)
        above = measure(generator, own, added, 1, nth if paired else nth + SIMULATED)
        for name in ("mean", *PROBABILITIES):
            found = contrast(below, above, name, paired=paired, confidence=0.95)
            assert found is not None
            covered[added, name].append(found.shift_low <= added * MS <= found.shift_high)
            errors.append(found.shift - added * MS)
            reaches.append((found.shift_high - found.shift_low) / 2)
    shares = {key: np.mean(values) for key, values in covered.items()}
    assert all(share >= 0.87 for share in shares.values()), shares
    assert np.mean([*shares.values()]) >= 0.92
    assert np.mean(reaches) < 3.5 * np.std(errors)  # Student's t reaches 2.2 to 3.2 for 4 to 10 runs


def four(generator: np.random.Generator, tops_ms: float, alike: int, runs: int) -> list[Replicates]:
    """Bottom, a layer of 2 ms, one of 5 ms, and both with so many ms."""
    same = levels(generator, runs)
    return [measure(generator, same, added, nth, alike) for nth, added in enumerate((0.0, 2.0, 5.0, tops_ms))]


@pytest.mark.slow
def test_layers_that_add_up_seldom_seem_not_to():
    generator = np.random.default_rng(7)
    wrong, covered = [], []
    for nth in range(SIMULATED // 2):
        measured = four(generator, 7, nth, 6)
        for name in ("mean", "p50", "p90"):
            found = interaction(measured, name, paired=True)
            assert found is not None
            wrong.append(found.p_different() < 0.05)
            low, high = found.interval(0.95)
            covered.append(low <= 0 <= high)
    assert np.mean(wrong) <= 0.1
    assert np.mean(covered) >= 0.9


def test_an_interaction_is_found_with_its_size():
    generator = np.random.default_rng(8)
    for paired in (True, False):
        found = interaction(four(generator, 10, 1, 6), "p50", paired=paired)
        assert found is not None
        low, high = found.interval(0.95)
        assert low <= 3 * MS <= high
        assert found.p_different() < 0.05


def test_means_of_runs_alone_tell_it_as_student_does():
    bottom, left, right, top = np.random.default_rng(9).normal(10, 1, (4, 8))
    found = interaction_of_runs([bottom, left, right, top], paired=True)
    each = top - left - right + bottom
    assert found is not None
    assert found.value == pytest.approx(each.mean())
    assert found.error == pytest.approx(each.std(ddof=1) / np.sqrt(8))
    assert found.freedom == 7
    apart = interaction_of_runs([bottom, left, right, top], paired=False)
    assert apart is not None
    assert apart.error == pytest.approx(np.sqrt(sum(runs.var(ddof=1) / 8 for runs in (bottom, left, right, top))))
    assert 7 <= apart.freedom <= 28


def test_one_run_tells_nothing():
    generator = np.random.default_rng(10)
    measured = four(generator, 7, 0, 3)
    measured[2] = measure(generator, levels(generator, 1), 5, 2, 0)
    assert interaction(measured, "p50", paired=False) is None
    assert interaction_of_runs([np.ones(3), np.ones(3), np.ones(1), np.ones(3)], paired=False) is None


def test_nothing_is_finer_than_the_clock():
    runs = [np.array([10.0, 10.0]) * MS] * 4
    found = interaction_of_runs(runs, paired=True, step=1 * MS)
    assert found is not None
    assert found.error == pytest.approx(np.sqrt(4 / 12) * MS)


def test_the_side_with_fewest_runs_limits_what_is_known():
    generator = np.random.default_rng(11)
    four = [generator.normal(10, 1, runs) for runs in (10, 10, 10, 3)]
    found = interaction_of_runs(four, paired=False)
    assert found is not None
    variances = [each.var(ddof=1) / each.size for each in four]
    welch = sum(variances) ** 2 / sum(v**2 / (each.size - 1) for v, each in zip(variances, four, strict=True))
    assert found.error == pytest.approx(np.sqrt(sum(variances)))
    assert found.freedom == min(welch, 2)


@pytest.mark.parametrize(("runs", "noisy"), [((10, 10, 10, 2), 3), ((10, 2, 10, 2), 1), ((2, 10, 10, 10), 3)])
def test_unequal_numbers_of_runs_seldom_seem_not_to_add_up(runs, noisy):
    """A side of two runs that agree by chance must not count as one whose spread is known."""
    generator, wrong = np.random.default_rng(12), []
    for _ in range(1500):
        four = [generator.normal(10, 1 if side == noisy else 0.3, size) for side, size in enumerate(runs)]
        found = interaction_of_runs(four, paired=False)
        assert found is not None
        wrong.append(found.p_different() <= 0.05)
    assert np.mean(wrong) <= 0.06


def test_runs_that_agree_to_the_last_digit_tell_nothing():
    runs = [np.full(3, level) for level in (0.1, 0.2, 0.3, 0.7)]
    assert interaction_of_runs(runs, paired=False) is None
    assert interaction_of_runs(runs, paired=True) is None
