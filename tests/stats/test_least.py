"""Percentiles among requests that timed out: what they are at least may be compared, and nothing else."""

import numpy as np
import pytest
from loadstone import stats
from loadstone.stats import contrasts
from loadstone.stats.bootstrap import at_least

LIMIT_NS = 2e9
P90 = {"p90": 0.9}


def cell(generator, share: float, runs: int, seed: int, requests: int = 300) -> stats.Replicates:
    """Runs around 10 ms of which about so large a share of requests times out, more in some runs than in others."""
    found = []
    for _ in range(runs):
        latencies = np.exp(np.log(10e6) + 0.05 * generator.normal() + 0.2 * generator.normal(size=requests))
        own = share * np.exp(0.3 * generator.normal())
        late = generator.random(requests) < own
        latencies[late] = LIMIT_NS
        told = np.ones(requests, bool)
        found.append(stats.Sample(latencies.astype(np.int64), told, late, late, ~late, 10.0, LIMIT_NS))
    return stats.replicate(found, P90, seed, seed + 1)


def contrast(baseline: stats.Replicates, other: stats.Replicates) -> contrasts.Contrast | None:
    return contrasts.contrast(baseline, other, "p90", paired=False, confidence=0.95)


def test_what_lies_among_timeouts_is_longer_than_what_does_not():
    generator = np.random.default_rng(1)
    quick, late = cell(generator, 0.0, 3, 1), cell(generator, 0.3, 3, 3)
    assert "p90" not in late.values and late.values[at_least("p90")] == LIMIT_NS
    found = contrast(quick, late)
    assert found.open_side == 1 and found.p_different() < 0.01
    # The truth is no less than the limit over what the quick one takes.
    assert 50 < found.ratio_low < LIMIT_NS / quick.values["p90"]
    back = contrast(late, quick)
    assert back.open_side == -1 and back.ratio_high == pytest.approx(1 / found.ratio_low)


def test_where_both_are_among_timeouts_nothing_is_told():
    generator = np.random.default_rng(2)
    assert contrast(cell(generator, 0.3, 3, 1), cell(generator, 0.3, 3, 3)) is None


def test_one_run_tells_nothing():
    generator = np.random.default_rng(3)
    assert contrast(cell(generator, 0.0, 3, 1), cell(generator, 0.3, 1, 3)) is None


@pytest.mark.parametrize(("runs", "share"), [(2, 0.075), (3, 0.09)])
def test_equal_variants_seldom_seem_longer(runs, share):
    """Of both as many requests time out, so many that p90 falls now among them, now not."""
    generator = np.random.default_rng([runs, round(1000 * share)])
    tries, wrong, open_sides = 200, 0, 0
    for number in range(tries):
        found = contrast(*(cell(generator, share, runs, 10 * number + side, 150) for side in (0, 5)))
        if found is not None and found.open_side:
            open_sides += 1
            wrong += found.p_different() < 0.05 and found.effect * found.open_side > 0
    assert open_sides > tries / 20
    assert wrong <= 0.05 * tries, (wrong, open_sides)
