"""How the level of a run changes over time: not at all, by a trend, a decay to a plateau, or steps between levels.

Each is a linear model of the series of blocks with AR(1) noise; the one with the least Bayesian information criterion
is chosen (Schwarz 1978). So autocorrelated noise is not mistaken for changes: Shi, Gallagher, Lund & Killick 2022, "A
comparison of single and multiple changepoint techniques for time series data", Computational Statistics & Data
Analysis 170, show that change points are found in it otherwise. Candidates for changes are those of least squares:
Jackson et al. 2005, "An algorithm for optimal partitioning of data on an interval", IEEE Signal Processing Letters 12.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_BLOCKS = 64
_FEWEST_BLOCKS = 8
_PER_BLOCK = 4  # at least

# Autocorrelations of noise from one block to the next that are tried in a fit.
CORRELATIONS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95])

# Hampel identifier, Davies & Gather 1993, "The identification of multiple outliers", JASA 88(423).
_WINDOW = 9
_FAR = 4.0
_MAD_TO_DEVIATION = 1.4826  # of a normal distribution


def log_latencies(latencies_ns: NDArray[np.int64], resolution_ns: float, seed: int) -> Array:
    """Natural logarithms of latencies that are dithered within the resolution of the clock.

    Without that, steps of the clock would be modes and ties. A `resolution_ns` of 1 or less means no dithering.
    """
    found = latencies_ns.astype(float)
    if resolution_ns > 1:
        found += (np.random.default_rng(seed).random(found.size) - 0.5) * resolution_ns
    logs: Array = np.log(np.maximum(found, max(resolution_ns, 1.0) / 2))
    return logs


def step_ns(latencies_ns: NDArray[np.int64]) -> float:
    """The largest unit of which all latencies are multiples: the step of their clock, if it is not recorded."""
    return float(np.gcd.reduce(latencies_ns)) if latencies_ns.size else 1.0


def block_bounds(n: int) -> NDArray[np.intp]:
    """The bounds of blocks of consecutive requests, shape (blocks + 1,)."""
    blocks = min(max(n // _PER_BLOCK, _FEWEST_BLOCKS), MOST_BLOCKS)
    return np.arange(blocks + 1) * n // blocks


def block_levels(logs: Array, edges: NDArray[np.intp]) -> Array:
    """The level of each block: the mean of the middle half of its logarithms, shape (blocks,).

    Like a median it is robust against single slow requests, but it does not jump from one mode to another.
    """
    width = int(np.diff(edges).min())
    block = np.sort(logs[edges[:-1, None] + np.arange(width)], axis=1)
    cut = width // 4
    found: Array = block[:, cut : width - cut].mean(axis=1)
    return found


def without_blips(series: Array) -> Array:
    """The series with outlying blocks replaced by the median around them, except at both ends.

    A pause of one block is no change of level. Changes that last for half of a window or longer remain.
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
    """Columns transformed so that the noise is independent, once for each of `CORRELATIONS`.

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


CONSTANT, TREND, DECAY, CHANGES = "constant", "trend", "decay", "changes"

# Of the run: how fast a plateau is reached.
_TIMES = np.array([1 / 40, 1 / 28, 1 / 20, 1 / 14, 1 / 10, 1 / 7, 1 / 5, 1 / 3.5])
_MOST_CHANGES = 5
# A level lasts for a tenth of the run at least.
_SHORTEST = 0.1
# Kass & Raftery 1995, "Bayes factors", JASA 90(430), section 3.2: 2 ln B above 6 is strong evidence.
_STRONG = 6.0


@dataclass(frozen=True)
class LevelModel:
    """A model of a series with its level, shape (blocks,). `changes` are the first blocks of all levels but the first.

    `cost` is -2 log likelihood, less a constant; `time` is that of a decay, as a share of the run.
    """

    kind: str
    fitted: Array
    cost: float
    parameters: int
    changes: tuple[int, ...] = ()
    time: float = 0.0

    @property
    def criterion(self) -> float:
        """The information criterion: less is better.

        Corrected for short series: McQuarrie 1999, "A small-sample correction for the Schwarz SIC model selection
        criterion", Statistics & Probability Letters 44.
        """
        n = self.fitted.size
        return float(self.cost + self.parameters * np.log(n) * n / max(n - self.parameters - 2, 1))


def level_model(series: Array) -> LevelModel:
    """The best model of a series of blocks. Changes of level, more complex, must be far better than a curve."""
    whitened = whiten(series[:, None])[:, :, 0]
    nothing = constant(series, whitened)
    curve = min((straight_line(whitened), _decay(whitened)), key=lambda each: each.criterion)
    levels = min(_changing(series, whitened), key=lambda each: each.criterion)
    smooth = curve if curve.criterion < nothing.criterion - _STRONG else nothing
    return levels if levels.criterion < smooth.criterion - _STRONG else smooth


def constant(series: Array, whitened: Array) -> LevelModel:
    """The series as one level."""
    costs, _ = cost(whitened, _constant(series.size))
    return LevelModel(CONSTANT, np.full(series.size, series.mean()), float(costs[0]), 2)


def straight_line(whitened: Array) -> LevelModel:
    """The series as a straight line."""
    n = whitened.shape[1]
    costs, correlations = cost(whitened, _bases(n)[:1])
    return LevelModel(TREND, _level(_columns(n)[0], whitened, int(correlations[0])), float(costs[0]), 3)


def _decay(whitened: Array) -> LevelModel:
    n = whitened.shape[1]
    costs, correlations = cost(whitened, _bases(n)[1:])
    best = int(costs.argmin())
    fitted = _level(_columns(n)[best + 1], whitened, int(correlations[best]))
    return LevelModel(DECAY, fitted, float(costs[best]), 4, time=float(_TIMES[best]))


def _changing(series: Array, whitened: Array) -> list[LevelModel]:
    """The best division into levels for every number of changes; each change has two parameters, place and level."""
    n, found = series.size, list[LevelModel]()
    shortest = max(2, round(_SHORTEST * n))
    for changes, at in enumerate(divisions(series, min(_MOST_CHANGES, n // shortest - 1), shortest), 1):
        segment = np.searchsorted(at, np.arange(n), side="right")
        columns = (segment[:, None] == np.arange(changes + 1)).astype(float)
        costs, _ = cost(whitened, basis(columns[None]))
        fitted = (np.bincount(segment, weights=series) / np.bincount(segment))[segment]
        found.append(LevelModel(CHANGES, fitted, float(costs[0]), 2 + 2 * changes, at))
        if changes > 2 and found[-1].criterion > found[-2].criterion > found[-3].criterion:
            break
    return found


def divisions(series: Array, most: int, shortest: int) -> Iterator[tuple[int, ...]]:
    """For 1 to `most` changes of level, where they are if the sum of squares around all levels is least.

    Each place is the first element of a level; a level has `shortest` elements at least.
    """
    n = series.size
    centred = series - series.mean()
    sums, squares = (np.concatenate([[0.0], np.cumsum(each)]) for each in (centred, centred**2))
    length = np.arange(n + 1) - np.arange(n + 1)[:, None]
    around = squares - squares[:, None] - (sums - sums[:, None]) ** 2 / np.maximum(length, 1)
    around[length < shortest] = np.inf  # [first, end] of one level
    least, lasts = around[0], list[NDArray[np.intp]]()
    for _ in range(most):
        total = least[:, None] + around
        lasts.append(total.argmin(axis=0))
        least = total.min(axis=0)
        places = [n]
        for last in reversed(lasts):
            places.insert(0, int(last[places[0]]))
        yield tuple(places[:-1])


def _level(columns: Array, whitened: Array, correlation: int) -> Array:
    """The level of a smooth model by generalised least squares, with one of `CORRELATIONS`."""
    coefficients = np.linalg.lstsq(whiten(columns)[correlation], whitened[correlation], rcond=None)[0]
    found: Array = columns @ coefficients
    return found


@cache
def _columns(n: int) -> NDArray[np.float64]:
    """A constant and a line, or a constant and a decay of each time; shape (models, n, 2)."""
    u = (np.arange(n) + 0.5) / n
    shapes = [u, *(np.exp(-u / time) for time in _TIMES)]
    return np.stack([np.column_stack([np.ones(n), shape]) for shape in shapes])


@cache
def _bases(n: int) -> Array:
    return basis(_columns(n))


@cache
def _constant(n: int) -> Array:
    return basis(np.ones((1, n, 1)))


def linear_trend(series: Array) -> tuple[float, float]:
    """The slope per element of a straight line, and the two-sided p-value of there being no trend.

    Line and noise are fitted together by maximum likelihood, with AR(1) noise: Beach & MacKinnon 1978, "A maximum
    likelihood procedure for regression with autocorrelated errors", Econometrica 46. The likelihood ratio is taken as
    the square of Student's t with n - 3 degrees of freedom, which it is where the noise is independent.
    """
    from scipy.special import stdtr  # noqa: PLC0415 - for the reason given in bootstrap.py

    n = series.size
    whitened = whiten(series[:, None])[:, :, 0]
    line = straight_line(whitened)
    square = (n - 3) * np.expm1(max(constant(series, whitened).cost - line.cost, 0.0) / n)
    slope = float(line.fitted[-1] - line.fitted[0]) / (n - 1)
    return slope, float(2 * stdtr(n - 3, -np.sqrt(square)))
