"""How long blocks of consecutive requests must be, so that blocks hardly depend on each other."""

import numpy as np
from numpy.typing import NDArray

_LEAST = 10  # values below which nothing is told about their dependence


def block_length(values: NDArray[np.float64]) -> float:
    """The block length for which a block bootstrap of the mean errs least, in values; 1 for fewer than ten of them.

    Politis & White 2004, *Automatic Block-Length Selection for the Dependent Bootstrap*, Econometric Reviews 23(1),
    section 3, as corrected by Patton, Politis & White 2009, ibid. 28(4): of the circular block bootstrap. The same as
    ``arch.bootstrap.optimal_block_length``, which loads pandas (jobs do without).
    """
    n = len(values)
    if n < _LEAST or values.min() == values.max():
        return 1.0
    centred = values - values.mean()
    longest = np.ceil(min(3 * np.sqrt(n), n / 3))
    run = max(5, int(np.log10(n)))
    most = min(int(np.ceil(np.sqrt(n))) + run, n - 2)
    covariances = _covariances(centred, most)
    window = 2 * max(_last_significant(centred, covariances * n, run), 1)
    window = min(window, most)
    lags = np.arange(1, window + 1)
    taper = np.where(lags <= window / 2, 1, 2 * (1 - lags / window))  # the flat-top lag window
    weighted = 2 * taper * covariances[1 : window + 1]
    spectrum_at_0 = covariances[0] + weighted.sum()
    if spectrum_at_0 == 0:
        return float(longest)
    bias = (weighted * lags).sum()
    length = (2 * bias**2 / (4 / 3 * spectrum_at_0**2)) ** (1 / 3) * n ** (1 / 3)
    return float(np.clip(length, 1, longest))


def _covariances(centred: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Autocovariances of lags 0 to `most`, through the spectrum."""
    n = len(centred)
    spectrum = np.fft.rfft(centred, 1 << (2 * n - 1).bit_length())
    found: NDArray[np.float64] = np.fft.irfft(np.abs(spectrum) ** 2)[: most + 1] / n
    return found


def _last_significant(centred: NDArray[np.float64], products: NDArray[np.float64], run: int) -> int:
    """The lag behind which `run` autocorrelations in a row tell nothing; half of what can be looked at if none is."""
    n, most = len(centred), len(products) - 1
    squares = np.cumsum(centred**2)
    lags = np.arange(most + 1)
    ahead, behind = squares[-1] - squares[lags], squares[n - lags - 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.abs(products) / np.sqrt(ahead * behind) < 2 * np.sqrt(np.log10(n) / n)
    for lag in range(run, most + 1):
        if small[lag - run : lag].all():
            return lag - run
    return most
