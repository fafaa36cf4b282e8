"""Lines through points: against numpy, against scipy, and whether the interval holds what it promises."""

import numpy as np
import pytest
from loadstone.stats import lines
from scipy import stats

PODS = [1, 1, 10, 10, 50, 50, 90, 90]


def test_the_line_is_numpy_s_and_its_interval_is_scipy_s():
    random = np.random.default_rng(5)
    x = np.array(PODS, dtype=float)
    y = 6.2 * x + 64 + random.normal(0, 20, len(x))
    found = lines.line(x, y, 0.95)
    slope, intercept = np.polyfit(x, y, 1)
    assert (found.slope, found.intercept) == (pytest.approx(slope), pytest.approx(intercept))
    reference = stats.linregress(x, y)
    factor = stats.t.ppf(0.975, len(x) - 2)
    assert found.slope_high - found.slope == pytest.approx(factor * reference.stderr)
    assert found.intercept - found.intercept_low == pytest.approx(factor * reference.intercept_stderr)
    residuals = y - (slope * x + intercept)
    assert found.residual_std == pytest.approx(np.sqrt((residuals**2).sum() / (len(x) - 2)))
    value, low, high = found.at(0.0)
    assert (value, low, high) == pytest.approx((found.intercept, found.intercept_low, found.intercept_high))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_holds_the_true_slope_as_often_as_it_says(confidence):
    """Also the band at one x. Of 4,000 draws the share has a standard deviation of 0.006 at most."""
    random = np.random.default_rng(23)
    x, slope, intercept = np.array(PODS, dtype=float), 4.1, 30.0
    held = banded = 0
    for y in slope * x + intercept + random.normal(0, 15, (4000, len(x))):
        found = lines.line(x, y, confidence)
        _, low, high = found.at(20.0)
        held += found.slope_low <= slope <= found.slope_high
        banded += low <= slope * 20 + intercept <= high
    assert abs(held / 4000 - confidence) < 0.025 and abs(banded / 4000 - confidence) < 0.025


def test_what_no_line_goes_through_has_none():
    assert lines.line([1, 2], [3, 4], 0.95) is None
    assert lines.line([5, 5, 5, 5], [1, 2, 3, 4], 0.95) is None
    exact = lines.line([1, 2, 3], [2, 4, 6], 0.95)
    assert exact.slope == pytest.approx(2) and exact.slope_high - exact.slope_low == pytest.approx(0, abs=1e-9)
