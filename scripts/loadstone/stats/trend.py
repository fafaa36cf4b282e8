"""A trend in a series that may be autocorrelated."""

import numpy as np

from loadstone.stats import structure
from loadstone.stats.blocks import Array, whiten


def linear(series: Array) -> tuple[float, float]:
    """The slope per element of a straight line, and the two-sided p-value of there being no trend.

    Line and noise are fitted together by maximum likelihood, with AR(1) noise: Beach & MacKinnon 1978, "A maximum
    likelihood procedure for regression with autocorrelated errors", Econometrica 46. The likelihood ratio is taken as
    the square of Student's t with n - 3 degrees of freedom, which it is where the noise is independent.
    """
    from scipy.special import stdtr  # noqa: PLC0415 - for the reason given in bootstrap.py

    n = series.size
    whitened = whiten(series[:, None])[:, :, 0]
    line = structure.trend(whitened)
    square = (n - 3) * np.expm1(max(structure.flat(series, whitened).cost - line.cost, 0.0) / n)
    slope = float(line.fitted[-1] - line.fitted[0]) / (n - 1)
    return slope, float(2 * stdtr(n - 3, -np.sqrt(square)))
