"""The length of blocks: that of the field's own library, and sensible where that has nothing to go by."""

import numpy as np
import pytest
from arch.bootstrap import optimal_block_length
from loadstone.stats.block_length import block_length
from scipy.signal import lfilter


@pytest.mark.parametrize("requests", [50, 300, 4000])
@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.8, 0.97])
def test_it_is_that_of_arch(persistence, requests):
    generator = np.random.default_rng(requests)
    for _ in range(3):
        values = lfilter([1], [1, -persistence], generator.normal(size=requests))
        expected = max(1.0, float(optimal_block_length(values)["circular"].iloc[0]))
        assert block_length(values) == pytest.approx(expected, rel=1e-9)


def test_the_more_requests_resemble_their_predecessors_the_longer():
    generator = np.random.default_rng(1)
    lengths = [block_length(lfilter([1], [1, -p], generator.normal(size=2000))) for p in (0.0, 0.6, 0.95)]
    assert lengths[0] < 5 < lengths[1] < lengths[2] <= 3 * np.sqrt(2000) + 1


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0], [5.0] * 100])
def test_where_nothing_is_told_each_request_is_a_block(values):
    assert block_length(np.array(values)) == 1


def test_a_drift_takes_long_blocks():
    values = np.linspace(0, 1, 900) + 0.01 * np.random.default_rng(2).normal(size=900)
    assert block_length(values) > 50
