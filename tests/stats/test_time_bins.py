"""Latency over time: every request is in its bin, and bins are as narrow as they may be."""

import numpy as np
import pytest
from loadstone.stats.latencies import _WIDTHS_NS, TimeBins, TimedRequests

S = 10**9


def run(since_s: np.ndarray | list[float], seed: int = 1) -> TimedRequests:
    since_ns = np.round(np.asarray(since_s) * S).astype(np.int64)
    random = np.random.default_rng(seed)
    latencies_ns = random.integers(1, 10**7, since_ns.size)
    return TimedRequests(since_ns, latencies_ns, random.random(since_ns.size) < 0.01)


@pytest.mark.parametrize("seed", range(10))
def test_a_bin_has_the_requests_that_all_runs_sent_in_it(seed) -> None:
    random = np.random.default_rng(seed)
    runs = [run(random.permutation(random.uniform(-2, random.uniform(1, 50), 500)), seed + n) for n in range(3)]
    bins = TimeBins.for_variants([runs], 30, 0)
    since_s = np.concatenate([each.since_ns for each in runs]) / S
    latencies_ns = np.concatenate([each.latencies_ns for each in runs])
    total = 0
    for number, n_runs, latencies in bins.latencies(runs):
        from_s, to_s = bins.extent_s(number)
        inside = (since_s >= from_s) & ((since_s < to_s) | (number == bins.last))
        assert latencies.ordered_ns.tolist() == sorted(latencies_ns[inside].tolist())
        assert n_runs == sum(bool(((own := each.since_ns / S) >= from_s).any() and (own < to_s).any()) for each in runs)
        total += latencies.size
    assert total == 1500


@pytest.mark.parametrize(
    ("end_s", "most", "expected_s", "last"),
    [
        (10, 30, 0.5, 19),  # 20 bins; 0.25 s would be 40
        (9.9, 30, 0.5, 19),  # the last one is shorter
        (9.6, 30, 0.5, 18),  # less than half of a bin is left, which the one before takes
        (0.0000001, 30, 0.001, 0),
        (10 * 86400, 3, 86400, 9),  # no round width is wide enough
    ],
)
def test_widths_are_round(end_s, most, expected_s, last) -> None:
    bins = TimeBins.for_variants([[run(np.linspace(0, end_s, 1000))]], most, 0)
    assert (bins.width_ns, bins.last) == (expected_s * S, last)


@pytest.mark.parametrize("per_bin", [1, 20, 50, 2000])
def test_bins_have_enough_requests_of_each_variant_on_average(per_bin) -> None:
    variants = [[run(np.linspace(0, 10, size))] for size in (300, 100)]
    width_ns = TimeBins.for_variants(variants, 60, per_bin).width_ns
    wide_enough = [each for each in _WIDTHS_NS if round(10 * S / each) <= 60 and 200 * each / (10 * S) >= per_bin]
    assert width_ns == min(wide_enough, default=86400 * S)


def test_a_warm_up_is_before_the_first_bin() -> None:
    parts = [run(np.linspace(-5, -0.001, 100)), run(np.linspace(0, 10, 100))]
    bins = TimeBins.for_variants([parts], 30, 0)
    numbers = [number for number, _, _ in bins.latencies(parts)]
    assert bins.width_ns == 0.5 * S and numbers == list(range(-10, 20))
