"""A run's latencies as a short series: the logarithm, block by block, whose noise is taken to be autocorrelated."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_BLOCKS = 64
_FEWEST_BLOCKS = 8
_PER_BLOCK = 4  # at least

# Autocorrelations from one block to the next that a fit may take its noise to have.
CORRELATIONS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95])

# Hampel identifier, Davies & Gather 1993, "The identification of multiple outliers", JASA 88(423).
_WINDOW = 9
_FAR = 4.0
_MAD_TO_DEVIATION = 1.4826  # of a normal distribution


def log_latencies(latencies_ns: NDArray[np.int64], resolution_ns: float, seed: int) -> Array:
    """Natural logarithms, after each latency was moved at random within what its clock leaves open.

    Without it, steps of the clock would be modes and ties. `resolution_ns` is that clock's; less than one is none.
    """
    found = latencies_ns.astype(float)
    if resolution_ns > 1:
        found += (np.random.default_rng(seed).random(found.size) - 0.5) * resolution_ns
    logs: Array = np.log(np.maximum(found, max(resolution_ns, 1.0) / 2))
    return logs


def step_ns(latencies_ns: NDArray[np.int64]) -> float:
    """The largest unit of which all latencies are whole multiples: what their clock counts in, if nobody says."""
    return float(np.gcd.reduce(latencies_ns)) if latencies_ns.size else 1.0


def bounds(n: int) -> NDArray[np.intp]:
    """Where blocks of consecutive requests begin and end, shape (blocks + 1,)."""
    blocks = min(max(n // _PER_BLOCK, _FEWEST_BLOCKS), MOST_BLOCKS)
    return np.arange(blocks + 1) * n // blocks


def levels(logs: Array, edges: NDArray[np.intp]) -> Array:
    """The level of each block: the mean of the middle half of its logarithms, shape (blocks,).

    It is robust against single slow requests as a median is, and does not jump from one mode to another as that does.
    """
    width = int(np.diff(edges).min())
    block = np.sort(logs[edges[:-1, None] + np.arange(width)], axis=1)
    cut = width // 4
    found: Array = block[:, cut : width - cut].mean(axis=1)
    return found


def without_blips(series: Array) -> Array:
    """The series with blocks that stand out from those around them put back; those at either end are left alone.

    A pause of one block is no change of level. What lasts for half of a window or longer stays.
    """
    if series.size < 2 * _WINDOW:
        return series
    half = _WINDOW // 2
    windows = np.lib.stride_tricks.sliding_window_view(series, _WINDOW)
    middle = np.median(windows, axis=1)
    spread = _MAD_TO_DEVIATION * np.median(np.abs(windows - middle[:, None]), axis=1)
    inner = series[half:-half]
    far = np.abs(inner - middle) > _FAR * np.maximum(spread, np.median(spread))
    found = series.copy()
    found[half:-half][far] = middle[far]
    return found


def whiten(columns: Array) -> Array:
    """Columns as they would be if the noise were independent, one for each of `CORRELATIONS`.

    Prais & Winsten 1954: the shape (n, p) becomes (correlations, n, p).
    """
    rho = CORRELATIONS[:, None, None]
    first = np.sqrt(1 - rho**2) * columns[None, :1]
    rest = columns[None, 1:] - rho * columns[None, :-1]
    return np.concatenate([first, rest], axis=1)


@cache
def _log_determinants(n: int) -> Array:
    found: Array = -np.log(1 - CORRELATIONS**2) / n
    return found


def cost(whitened: Array, bases: Array) -> tuple[Array, NDArray[np.intp]]:
    """-2 log likelihood of a series, less a constant, under linear models with AR(1) noise.

    `whitened` is the series by `whiten`, shape (correlations, n); `bases` are orthonormal columns of each whitened
    model, shape (models, correlations, n, p). Returns the costs at the likeliest correlation, shape (models,), and
    which of `CORRELATIONS` that is for each.
    """
    n = whitened.shape[1]
    projected = np.einsum("mrnp,rn->mrp", bases, whitened)
    squares = (whitened**2).sum(axis=1)[None] - (projected**2).sum(axis=2)
    variance = np.maximum(squares / n, 1e-12)
    found = n * (np.log(variance) + _log_determinants(n)[None])
    best = found.argmin(axis=1)
    return found[np.arange(len(found)), best], best


def basis(columns: Array) -> Array:
    """Orthonormal columns of each whitened model, shape (models, correlations, n, p), of columns (models, n, p)."""
    return np.stack([np.linalg.qr(whiten(model))[0] for model in columns])
