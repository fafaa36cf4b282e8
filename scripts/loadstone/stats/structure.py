"""What the level of a run does over time: nothing, a trend, a decay to a plateau, or changes from one level to another.

Each is a linear model of the series of blocks (`blocks.py`) with AR(1) noise, and the one with the least Bayesian
information criterion is taken (Schwarz 1978). Noise that wanders by itself then needs no change to explain it; Shi,
Gallagher, Lund & Killick 2022, "A comparison of single and multiple changepoint techniques for time series data",
Computational Statistics & Data Analysis 170, show that without this, change points are found in autocorrelation.
Candidates for changes are those of least squares (Killick, Fearnhead & Eckley 2012; `ruptures`).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.blocks import Array, basis, cost, whiten

FLAT, TREND, DECAY, CHANGES = "flat", "trend", "decay", "changes"

# Of the run: how fast a plateau is reached.
_TIMES = np.array([1 / 40, 1 / 28, 1 / 20, 1 / 14, 1 / 10, 1 / 7, 1 / 5, 1 / 3.5])
_MOST_CHANGES = 5
# A level lasts for a tenth of the run, else it is no level.
_SHORTEST = 0.1
# Kass & Raftery 1995, "Bayes factors", JASA 90(430), section 3.2: 2 ln B above 6 is strong evidence.
_STRONG = 6.0


@dataclass(frozen=True)
class Structure:
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
        """The information criterion: the less, the better explained.

        Corrected for short series: McQuarrie 1999, "A small-sample correction for the Schwarz SIC model selection
        criterion", Statistics & Probability Letters 44.
        """
        n = self.fitted.size
        return float(self.cost + self.parameters * np.log(n) * n / max(n - self.parameters - 2, 1))


def find(series: Array) -> Structure:
    """The structure of a series of blocks. Changes of level, which take more words, must be far better than a curve."""
    whitened = whiten(series[:, None])[:, :, 0]
    nothing = flat(series, whitened)
    curve = min((trend(whitened), _decay(whitened)), key=lambda each: each.criterion)
    levels = min(_changing(series, whitened), key=lambda each: each.criterion)
    smooth = curve if curve.criterion < nothing.criterion - _STRONG else nothing
    return levels if levels.criterion < smooth.criterion - _STRONG else smooth


def flat(series: Array, whitened: Array) -> Structure:
    """The series as one level."""
    costs, _ = cost(whitened, _constant(series.size))
    return Structure(FLAT, np.full(series.size, series.mean()), float(costs[0]), 2)


def trend(whitened: Array) -> Structure:
    """The series as a straight line."""
    n = whitened.shape[1]
    costs, correlations = cost(whitened, _bases(n)[:1])
    return Structure(TREND, _level(_columns(n)[0], whitened, int(correlations[0])), float(costs[0]), 3)


def _decay(whitened: Array) -> Structure:
    n = whitened.shape[1]
    costs, correlations = cost(whitened, _bases(n)[1:])
    best = int(costs.argmin())
    fitted = _level(_columns(n)[best + 1], whitened, int(correlations[best]))
    return Structure(DECAY, fitted, float(costs[best]), 4, time=float(_TIMES[best]))


def _changing(series: Array, whitened: Array) -> list[Structure]:
    """The best division into levels for every number of changes, each of which costs its place and its level."""
    import ruptures  # noqa: PLC0415 - takes long to import, and most jobs need none of it

    n, found = series.size, list[Structure]()
    shortest = max(2, round(_SHORTEST * n))
    search = ruptures.KernelCPD(kernel="linear", min_size=shortest).fit(series[:, None])
    for changes in range(1, min(_MOST_CHANGES, n // shortest - 1) + 1):
        at = tuple(search.predict(n_bkps=changes)[:-1])
        segment = np.searchsorted(at, np.arange(n), side="right")
        columns = (segment[:, None] == np.arange(changes + 1)).astype(float)
        costs, _ = cost(whitened, basis(columns[None]))
        fitted = (np.bincount(segment, weights=series) / np.bincount(segment))[segment]
        found.append(Structure(CHANGES, fitted, float(costs[0]), 2 + 2 * changes, at))
        if changes > 2 and found[-1].criterion > found[-2].criterion > found[-3].criterion:
            break
    return found


def _level(columns: Array, whitened: Array, correlation: int) -> Array:
    """The level of a smooth model by generalised least squares, with one of `blocks.CORRELATIONS`."""
    coefficients = np.linalg.lstsq(whiten(columns)[correlation], whitened[correlation], rcond=None)[0]
    found: Array = columns @ coefficients
    return found


@cache
def _columns(n: int) -> NDArray[np.float64]:
    """A constant beside a line, or beside a decay of each time; shape (models, n, 2)."""
    u = (np.arange(n) + 0.5) / n
    shapes = [u, *(np.exp(-u / time) for time in _TIMES)]
    return np.stack([np.column_stack([np.ones(n), shape]) for shape in shapes])


@cache
def _bases(n: int) -> Array:
    return basis(_columns(n))


@cache
def _constant(n: int) -> Array:
    return basis(np.ones((1, n, 1)))
