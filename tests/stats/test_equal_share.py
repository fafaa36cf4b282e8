"""Latencies at a share of the knee: interpolated between measured rates, with the knee's own uncertainty."""

import numpy as np
import pytest
from loadstone.stats.equal_share import at_share, ratio
from loadstone.stats.saturation import Estimate, Knee

RATES = [50.0, 100.0, 200.0, 400.0]
KNEE = Knee(300, 200, 400, "throughput", ())


def values(of_rate) -> list[Estimate]:
    return [Estimate(of_rate(rate), of_rate(rate) * 0.9, of_rate(rate) * 1.1) for rate in RATES]


def test_between_rates_a_power_law_is_met_exactly():
    found = at_share(KNEE, 0.5, RATES, values(lambda rate: 3 * rate**1.5))
    assert found.load == 150
    assert found.value is not None and found.problem is None
    assert found.value.value == pytest.approx(3 * 150**1.5)
    # The knee is 200 to 400, so its half is 100 to 200.
    assert found.value.low == pytest.approx(0.9 * 3 * 100**1.5)
    assert found.value.high == pytest.approx(1.1 * 3 * 200**1.5)


def test_the_interval_spans_what_lies_between_the_ends_of_the_knee():
    dipping = [Estimate(value, value, value) for value in (8.0, 8.0, 2.0, 8.0)]
    found = at_share(Knee(300, 150, 400, "throughput", ()), 1, RATES, dipping)
    assert found.value is not None
    assert (found.value.low, found.value.high) == (pytest.approx(2), pytest.approx(8))


def test_nothing_is_extrapolated():
    found = at_share(KNEE, 0.2, RATES, values(float))
    assert found.value is None
    assert found.problem == "20% of the knee is 40 to 80 requests/s, measured is 50 to 400"


@pytest.mark.parametrize("ends", [(None, 400), (200, None)])
def test_without_a_knee_there_is_no_share(ends):
    found = at_share(Knee(None, *ends, None, (), "not reached up to 400"), 0.5, RATES, values(float))
    assert (found.load, found.value) == (None, None)
    assert found.problem == "no knee: not reached up to 400"


def test_single_runs_are_refused():
    found = at_share(KNEE, 0.5, RATES, [Estimate(rate) for rate in RATES])
    assert (found.value, found.problem) == (None, "one run at a rate gives no interval")


def test_a_ratio_holds_all_that_its_parts_allow():
    generator = np.random.default_rng(4)
    over, under = generator.uniform(2, 4, 1000), generator.uniform(5, 8, 1000)
    found = ratio(Estimate(3, 2, 4), Estimate(6, 5, 8))
    assert found.value == 0.5
    assert found.low == 0.25 and found.high == 0.8
    assert np.all((over / under >= found.low) & (over / under <= found.high))
