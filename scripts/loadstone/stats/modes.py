"""Whether latencies are of several kinds."""

import numpy as np

from loadstone.stats.blocks import Array

_FEWEST = 50
_MOST = 10_000


def dip(logs: Array) -> tuple[float, float] | None:
    """The dip of latencies (given as logarithms), and its p-value under one mode; None for too few.

    Hartigan & Hartigan 1985, "The dip test of unimodality", Annals of Statistics 13(1). The test wants independent
    values: those of an autocorrelated run are thinned to as many as their integrated autocorrelation time leaves.
    """
    import diptest  # noqa: PLC0415 - for the reason given in bootstrap.py

    stride = max(round(_correlation_time(logs)), -(-logs.size // _MOST), 1)
    thinned = np.exp(logs[::stride])
    if thinned.size < _FEWEST:
        return None
    statistic, p = diptest.diptest(thinned)
    return float(statistic), float(p)


def _correlation_time(logs: Array) -> float:
    """1 + 2 x the sum of autocorrelations up to the first that is not positive (Geyer 1992, section 3.3)."""
    centred = logs - logs.mean()
    length = 1 << (2 * centred.size - 1).bit_length()
    covariance = np.fft.irfft(np.abs(np.fft.rfft(centred, length)) ** 2, length)[: centred.size // 4]
    if covariance[0] <= 0:
        return 1.0
    rho = covariance / covariance[0]
    insignificant = np.flatnonzero(rho < 2 / np.sqrt(centred.size))
    end = int(insignificant[0]) if insignificant.size else rho.size
    return float(1 + 2 * rho[1:end].sum())
