"""A straight line through points by least squares, with Student's t-intervals.

Draper & Smith 1998, *Applied Regression Analysis*, sections 1.4 (slope and intercept) and 3.1 (the band of the mean):
errors are taken as independent, of one variance and near normal. Points are runs, the unit of replication.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from loadstone.stats.bootstrap import t_factor

LEAST_POINTS = 3  # with two the line goes through both, and its error is unknown


@dataclass(frozen=True)
class Line:
    """``y = intercept + slope * x`` over `n` points; each interval holds the true value with `confidence` (a share)."""

    n: int
    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    intercept_low: float
    intercept_high: float
    residual_std: float  # of points about the line, with n - 2 degrees of freedom
    mean_x: float
    sum_squares_x: float
    factor: float  # of Student's t
    confidence: float

    def at(self, x: float) -> tuple[float, float, float]:
        """The line at `x`, with the interval of its mean there."""
        value = self.intercept + self.slope * x
        spread = sqrt(1 / self.n + (x - self.mean_x) ** 2 / self.sum_squares_x)
        reach = self.factor * self.residual_std * spread
        return value, value - reach, value + reach


def line(xs: Sequence[float], ys: Sequence[float], confidence: float) -> Line | None:
    """The line through these points; None for fewer than three, or where all have one x."""
    x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    n = len(x)
    if n < LEAST_POINTS or x.min() == x.max():
        return None
    mean_x, mean_y = float(x.mean()), float(y.mean())
    sum_squares_x = float(((x - mean_x) ** 2).sum())
    slope = float(((x - mean_x) * (y - mean_y)).sum()) / sum_squares_x
    intercept = mean_y - slope * mean_x
    residual_std = sqrt(float(((y - intercept - slope * x) ** 2).sum()) / (n - 2))
    factor = t_factor(confidence, n - 2)
    of_slope = factor * residual_std / sqrt(sum_squares_x)
    of_intercept = factor * residual_std * sqrt(1 / n + mean_x**2 / sum_squares_x)
    return Line(
        n,
        slope,
        slope - of_slope,
        slope + of_slope,
        intercept,
        intercept - of_intercept,
        intercept + of_intercept,
        residual_std,
        mean_x,
        sum_squares_x,
        factor,
        confidence,
    )
