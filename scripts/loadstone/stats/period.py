"""Whether latency comes and goes with a fixed period.

The largest ordinate of the periodogram against a background of AR(1) noise, fitted to medians so that peaks do not lift
it: Mann & Lees 1996, "Robust estimation of background noise and signal detection in climatic time series", Climatic
Change 33. Relative to it ordinates of noise are exponential, and the largest of m has the p-value
1 - (1 - exp(-x))^m (Fisher 1929).
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from loadstone.stats.blocks import Array

_MOST_BINS = 2048
_FEWEST_CYCLES = 4  # in a run: fewer are no rule
_FEWEST_BINS = 128  # for a background to be known
_PHI = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99])
_GROUPS = 8
_HARMONICS = 3
_FINER = 8
_UNLIKELY = 0.01


@dataclass(frozen=True)
class Period:
    """The strongest period: its length in requests, its p-value, and what of it the logarithms show.

    `profile` is that part of each request's logarithm, shape (n,); `height` goes from its trough to its peak. Where the
    p-value leaves no doubt that it is chance, both are not worked out: None and 0.
    """

    requests: float
    p: float
    profile: Array | None = None
    height: float = 0.0


def find(logs: Array) -> Period | None:
    """The strongest period in logarithms of latencies from which everything slower was taken; None for too few."""
    width = max(1, -(-logs.size // _MOST_BINS))
    bins = logs.size // width
    if bins < _FEWEST_BINS:
        return None
    binned = logs[: bins * width].reshape(bins, width).mean(axis=1)
    binned = binned - binned.mean()
    power = (np.abs(np.fft.rfft(binned)) ** 2)[1:]
    relative = power / _background(power)
    tried = relative[_FEWEST_CYCLES - 1 :]
    strongest = int(tried.argmax()) + _FEWEST_CYCLES
    p = float(-np.expm1(tried.size * np.log1p(-np.exp(-max(tried.max(), 1e-9)))))
    if p > _UNLIKELY:
        return Period(bins * width / strongest, p)
    cycles = _fundamental(relative, strongest, tried.size)
    cycles = _refined(binned, cycles)
    profile = _profile(logs, cycles / (bins * width))
    return Period(bins * width / cycles, p, profile, float(np.ptp(profile)))


def _background(power: Array) -> Array:
    """The spectrum of AR(1) noise that fits the medians of the ordinates, taken in groups of like frequency."""
    shapes = _shapes(power.size)
    ratios = power / shapes
    middles = np.stack([_median(ratios[:, group]) for group in _groups(power.size)], axis=1)
    logs = np.log(np.maximum(middles, 1e-300))
    best = int(np.abs(logs - _median(logs)[:, None]).mean(axis=1).argmin())
    found: Array = shapes[best] * max(float(_median(ratios[best : best + 1])[0]) / np.log(2), 1e-300)
    return found


def _median(rows: Array) -> Array:
    """Of each row; the lower one of two (numpy's own takes several times as long)."""
    middle = (rows.shape[1] - 1) // 2
    found: Array = np.partition(rows, middle, axis=1)[:, middle]
    return found


@cache
def _shapes(ordinates: int) -> Array:
    angle = np.pi * np.arange(1, ordinates + 1) / ordinates
    found: Array = 1 / (1 - 2 * _PHI[:, None] * np.cos(angle) + _PHI[:, None] ** 2)
    return found


@cache
def _groups(ordinates: int) -> tuple[slice, ...]:
    """Groups of ordinates: a few of the lowest frequencies, then ever more."""
    edges = [0, *np.unique(np.geomspace(6, ordinates, _GROUPS).astype(int)).tolist()]
    return tuple(slice(low, high) for low, high in pairwise(edges))


def _fundamental(relative: Array, strongest: int, tried: int) -> float:
    """The lowest frequency of which the strongest is a multiple and that stands out itself."""
    limit = np.log(tried) + 3
    for divisor in (4, 3, 2):
        near = round(strongest / divisor)
        if near >= _FEWEST_CYCLES and relative[near - 1] > limit:
            return float(near)
    return float(strongest)


def _refined(binned: Array, cycles: float) -> float:
    """The frequency between those of the periodogram at which the series is strongest, in cycles per run."""
    near = cycles + np.linspace(-0.75, 0.75, 2 * _FINER + 1)
    waves = np.exp(-2j * np.pi * near[:, None] * np.arange(binned.size) / binned.size)
    return float(near[np.abs(waves @ binned).argmax()])


def _profile(logs: Array, frequency: float) -> Array:
    """The part of the logarithms that has this frequency or twice or thrice it, by least squares."""
    angle = 2 * np.pi * frequency * np.arange(logs.size)
    harmonics = [each for each in range(1, _HARMONICS + 1) if each * frequency < 0.5]
    waves = [wave(each * angle) for each in harmonics for wave in (np.cos, np.sin)]
    columns = np.column_stack(waves) if waves else np.cos(angle)[:, None]
    found: Array = columns @ np.linalg.lstsq(columns, logs - logs.mean(), rcond=None)[0]
    return found
