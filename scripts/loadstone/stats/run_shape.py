"""The shape of a run: how its latency changes over time, and whether it has several modes.

Latencies in the order of sending -> one main shape, all shapes that apply, and the evidence. A shape is significant
(tests of `change_points`, `strongest_period` and `dip`) and large enough to matter (`MATERIAL`).
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.change_points import (
    CHANGES,
    CONSTANT,
    DECAY,
    Array,
    LevelModel,
    block_bounds,
    block_levels,
    level_model,
    linear_trend,
    log_latencies,
    step_ns,
    without_blips,
)

FLAT = "flat"
WARMING_UP = "still warming up"
DRIFTING_UP = "drifting up"
DRIFTING_DOWN = "drifting down"
CHANGING_LEVEL = "changing level"
UNEVEN = "uneven"
PERIODIC = "periodic"
SEVERAL_MODES = "several modes"
TOO_FEW = "too few"

# The mean over a run of such a shape is not that of a steady state.
UNSETTLED = (WARMING_UP, DRIFTING_UP, DRIFTING_DOWN, CHANGING_LEVEL, UNEVEN)

_DRIFTING = (DRIFTING_UP, DRIFTING_DOWN)

FEWEST_REQUESTS = 40
# A change is material from a fifth of the latency on: over a run, from one level to another, from trough to peak. A
# steady drift of that size changes the mean of a run by a tenth.
MATERIAL = 1.2
# From this ratio on, halves are uneven even if no model of the level explains it. A burst of slow requests makes them
# so; noise that is correlated over a tenth of the run does not (tests/stats/test_run_shape.py).
HALVES_RATIO = 2.0
# A slow start matters if it increases the mean of the whole run by this share of the level afterwards.
WARMUP_SHARE = 0.05

_PERIOD_P = 1e-4
_DIP_P = 0.01
# Modes of a twentieth of all requests have a smaller dip.
_LEAST_DIP = 0.015

# Schmeiser 1982, "Batch size effects in the analysis of simulation output", advises 10 to 30 batches.
_NOISE_BLOCKS = 25

# Of MSER-5.
_BATCH = 5

# Of the search for a period.
_MOST_BINS = 2048  # of the periodogram
_FEWEST_CYCLES = 4  # in a run: fewer are no period
_FEWEST_BINS = 128  # needed to estimate the background
_CORRELATIONS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99])
_GROUPS = 8
_HARMONICS = 3
_FINER = 8
_CHANCE_P = 0.01

# Latencies that the dip test takes.
_FEWEST_FOR_DIP = 50
_MOST_FOR_DIP = 10_000

# Everything that a shape depends on, other than the run.
CODE = [(Path(__file__).parent / name).read_text("utf-8") for name in ("change_points.py", "run_shape.py")]


@dataclass(frozen=True)
class RunShape:
    """The shapes and the evidence; None where there are too few requests.

    `half_ratio` is the mean latency of the first half over that of the second, `trend_share` the change over the run by
    a straight line, as a share of the start (0.3: 30 % more), `change_share` that by the line or curve that fits a
    drift best (None: there is none), `warmup_requests` the length of the warm-up by MSER-5 (None: no end of it in the
    first half), `warmup_share` by how much a slow start lengthens the mean. `change_seqs`
    are the first requests of new levels, `levels_ns` the levels before and after each (geometric means of the middle
    half). `period_requests` is the strongest period, be it chance (`period_p`) or not; `period_share` says by how much
    its peak is above its trough, where it is not. `noise` is the standard error of the run's mean as a share of it,
    from the means of blocks of requests.
    """

    shape: str
    shapes: tuple[str, ...]
    half_ratio: float | None = None
    trend_share: float | None = None
    trend_p: float | None = None
    change_share: float | None = None
    warmup_requests: int | None = None
    warmup_share: float | None = None
    change_seqs: tuple[int, ...] = ()
    levels_ns: tuple[float, ...] = ()
    period_requests: float | None = None
    period_p: float | None = None
    period_share: float | None = None
    dip: float | None = None
    dip_p: float | None = None
    noise: float | None = None


def classify(latencies_ns: NDArray[np.int64], resolution_ns: float | None, seed: int) -> RunShape:
    """The shape of a run of these latencies, in the order of sending.

    Latencies are multiples of `resolution_ns`; their greatest common divisor is used if it is larger, or if that is
    None. `seed` is that of the dithering.
    """
    n = latencies_ns.size
    if n < FEWEST_REQUESTS:
        return RunShape(TOO_FEW, (TOO_FEW,))
    resolution = max(resolution_ns or 1.0, step_ns(latencies_ns))
    logs = log_latencies(latencies_ns, resolution, seed)
    edges = block_bounds(n)
    series = without_blips(block_levels(logs, edges))
    found = level_model(series)
    block = np.searchsorted(edges, np.arange(n), side="right") - 1
    settled = logs - found.fitted[block]
    repeating = strongest_period(settled)
    is_periodic = repeating is not None and repeating.p < _PERIOD_P and repeating.height > np.log(MATERIAL)
    if repeating is not None and repeating.profile is not None and is_periodic:
        settled = settled - repeating.profile
    start = edges[int(np.ceil(3 * found.time * series.size))] if found.kind == DECAY else 0
    kinds = dip(settled[start:])
    slope, trend_p = linear_trend(series)
    half = n // 2
    half_ratio = float(latencies_ns[:half].mean() / max(latencies_ns[half:].mean(), 1.0))
    over_time = _over_time(found) or _uneven(half_ratio)
    several = kinds is not None and kinds[1] < _DIP_P and kinds[0] > _LEAST_DIP
    shapes = [over_time] if over_time else []
    shapes += [PERIODIC] if is_periodic else []
    shapes += [SEVERAL_MODES] if several else []
    shapes = shapes or [FLAT]
    changes = found.changes if over_time == CHANGING_LEVEL else ()
    return RunShape(
        shapes[0],
        tuple(shapes),
        half_ratio=half_ratio,
        trend_share=float(np.expm1(slope * (series.size - 1))),
        trend_p=trend_p,
        change_share=float(np.expm1(found.fitted[-1] - found.fitted[0])) if over_time in _DRIFTING else None,
        warmup_requests=mser(latencies_ns),
        warmup_share=max(0.0, _start_share(found)),
        change_seqs=tuple(int(edges[change]) for change in changes),
        levels_ns=tuple(float(np.exp(found.fitted[change])) for change in (0, *changes)) if changes else (),
        period_requests=repeating.requests if repeating else None,
        period_p=repeating.p if repeating else None,
        period_share=float(np.expm1(repeating.height)) if is_periodic and repeating else None,
        dip=kinds[0] if kinds else None,
        dip_p=kinds[1] if kinds else None,
        noise=_noise(latencies_ns),
    )


def _over_time(found: LevelModel) -> str | None:
    """How the level changes, if that is material."""
    first, last = found.fitted[0], found.fitted[-1]
    if found.kind == CONSTANT or np.ptp(found.fitted) < np.log(MATERIAL):
        return None
    if found.kind == CHANGES:
        return CHANGING_LEVEL
    if found.kind == DECAY and abs(_start_share(found)) <= WARMUP_SHARE:
        return None
    if found.kind == DECAY and first > last:
        return WARMING_UP
    return DRIFTING_UP if last > first else DRIFTING_DOWN


def _uneven(half_ratio: float) -> str | None:
    return None if 1 / HALVES_RATIO < half_ratio < HALVES_RATIO else UNEVEN


def _start_share(found: LevelModel) -> float:
    """By how much a slow start increases the mean of the run over its final level; below 0 for a fast start."""
    if found.kind != DECAY:
        return 0.0
    return float(np.exp(found.fitted - found.fitted[-1]).mean() - 1)


def _noise(latencies_ns: NDArray[np.int64]) -> float | None:
    at = np.arange(_NOISE_BLOCKS + 1) * latencies_ns.size // _NOISE_BLOCKS
    means: Array = np.add.reduceat(latencies_ns.astype(float), at[:-1]) / np.diff(at)
    if means.mean() <= 0:
        return None
    return float(means.std(ddof=1) / np.sqrt(means.size) / means.mean())


def mser(latencies_ns: NDArray[np.int64]) -> int | None:
    """How many requests to omit at the start, by MSER-5; None where the run does not settle in its first half.

    White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), on means
    of five (White, Cobb & Spratt 2000): the standard error of the mean of the other requests is least. A minimum in the
    second half means that there was no steady state: Hoad, Robinson & Davies 2010, "Automating warm-up length
    estimation", Journal of the Operational Research Society 61.
    """
    batches = latencies_ns.size // _BATCH
    if batches < 2 * _BATCH:
        return None
    means = latencies_ns[: batches * _BATCH].reshape(batches, _BATCH).mean(axis=1)
    rest = np.arange(batches, 0, -1)
    total, squares = (np.cumsum(values[::-1])[::-1] for values in (means, means**2))
    error = (squares / rest - (total / rest) ** 2) / rest
    left_out = int(error[: batches - _BATCH].argmin())
    return left_out * _BATCH if left_out < batches // 2 else None


@dataclass(frozen=True)
class Period:
    """The strongest period: its length in requests, its p-value, and its part of the logarithms.

    `profile` is that part of the logarithm of each request, shape (n,); `height` is from its trough to its peak. Where
    the p-value is far from significant they are not computed: None and 0.
    """

    requests: float
    p: float
    profile: Array | None = None
    height: float = 0.0


def strongest_period(logs: Array) -> Period | None:
    """The strongest period in logarithms of latencies without slower changes; None for too few."""
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
    if p > _CHANCE_P:
        return Period(bins * width / strongest, p)
    cycles = _fundamental(relative, strongest, tried.size)
    cycles = _refined(binned, cycles)
    profile = _profile(logs, cycles / (bins * width))
    return Period(bins * width / cycles, p, profile, float(np.ptp(profile)))


def _background(power: Array) -> Array:
    """The spectrum of AR(1) noise fitted to the medians of the ordinates in groups of similar frequency."""
    shapes = _shapes(power.size)
    ratios = power / shapes
    middles = np.stack([_median(ratios[:, group]) for group in _groups(power.size)], axis=1)
    logs = np.log(np.maximum(middles, 1e-300))
    best = int(np.abs(logs - _median(logs)[:, None]).mean(axis=1).argmin())
    found: Array = shapes[best] * max(float(_median(ratios[best : best + 1])[0]) / np.log(2), 1e-300)
    return found


def _median(rows: Array) -> Array:
    """The median of each row, the lower one of two (numpy.median takes several times as long)."""
    middle = (rows.shape[1] - 1) // 2
    found: Array = np.partition(rows, middle, axis=1)[:, middle]
    return found


@cache
def _shapes(ordinates: int) -> Array:
    angle = np.pi * np.arange(1, ordinates + 1) / ordinates
    found: Array = 1 / (1 - 2 * _CORRELATIONS[:, None] * np.cos(angle) + _CORRELATIONS[:, None] ** 2)
    return found


@cache
def _groups(ordinates: int) -> tuple[slice, ...]:
    """Groups of ordinates, of few at the lowest frequencies and more at higher ones."""
    edges = [0, *np.unique(np.geomspace(6, ordinates, _GROUPS).astype(int)).tolist()]
    return tuple(slice(low, high) for low, high in pairwise(edges))


def _fundamental(relative: Array, strongest: int, tried: int) -> float:
    """The lowest significant frequency of which the strongest is a multiple."""
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
    """The part of the logarithms with this frequency and its second and third harmonics, by least squares."""
    angle = 2 * np.pi * frequency * np.arange(logs.size)
    harmonics = [each for each in range(1, _HARMONICS + 1) if each * frequency < 0.5]
    waves = [wave(each * angle) for each in harmonics for wave in (np.cos, np.sin)]
    columns = np.column_stack(waves) if waves else np.cos(angle)[:, None]
    found: Array = columns @ np.linalg.lstsq(columns, logs - logs.mean(), rcond=None)[0]
    return found


def dip(logs: Array) -> tuple[float, float] | None:
    """The dip of latencies (given as logarithms), and its p-value under one mode; None for too few.

    The test assumes independent values: those of an autocorrelated run are thinned by their integrated autocorrelation
    time.
    """
    stride = max(round(_correlation_time(logs)), -(-logs.size // _MOST_FOR_DIP), 1)
    thinned = np.exp(logs[::stride])
    if thinned.size < _FEWEST_FOR_DIP:
        return None
    statistic = dip_statistic(thinned)
    return statistic, dip_p_value(statistic, thinned.size)


def dip_statistic(values: Array) -> float:
    """The greatest difference between the values' distribution and the unimodal distribution nearest to it.

    Hartigan & Hartigan 1985, "The dip test of unimodality", Annals of Statistics 13(1): the modal interval shrinks
    between touching points of the greatest convex minorant and the least concave majorant, until these are as near to
    each other as the distribution is to them outside of the interval. Counts instead of shares until the end.
    """
    x, counts = np.unique(values, return_counts=True)
    above: Array = np.cumsum(counts, dtype=float)  # the distribution's steps
    below: Array = above - counts
    first, last, found = 0, x.size - 1, 1.0
    while last > first:
        part = slice(first, last + 1)
        minorant, low_points = _hull(x[part], below[part], increasing=True)
        majorant, high_points = _hull(x[part], above[part], increasing=False)
        apart = majorant - minorant
        at_low, at_high = low_points[np.argmax(apart[low_points])], high_points[np.argmax(apart[high_points])]
        if apart[at_low] > apart[at_high]:
            low, high = at_low, high_points[np.searchsorted(high_points, at_low)]
        else:
            low, high = low_points[np.searchsorted(low_points, at_high, side="right") - 1], at_high
        if max(apart[at_low], apart[at_high]) <= found:
            break
        outside = (above[part] - minorant)[: low + 1].max(), (majorant - below[part])[high:].max()
        found = max(found, *map(float, outside))
        if (low, high) == (0, last - first):
            break
        first, last = first + int(low), first + int(high)
    return found / (2 * values.size)


def _hull(x: Array, y: Array, *, increasing: bool) -> tuple[Array, NDArray[np.int64]]:
    """The convex minorant (else the concave majorant) of points: its values there, and where it touches them."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - for the reason given in bootstrap.py

    widths = np.diff(x)
    slopes = isotonic_regression(np.diff(y) / widths, weights=widths, increasing=increasing)
    return np.concatenate(([y[0]], y[0] + np.cumsum(slopes.x * widths))), slopes.blocks


def dip_p_value(statistic: float, n: int) -> float:
    """The share of `n` uniform values with at least that dip; the least share of the table stands for all below it.

    Interpolated in a table of 200,000 simulated samples for each size: dips by the logarithm of the share, sizes by
    that of themselves.
    """
    scaled = np.sqrt(n) * statistic
    rows = [float(np.interp(scaled, row, np.log(_DIP_SHARES))) for row in _DIPS.values()]
    return float(np.exp(np.interp(np.log(n), np.log(list(_DIPS)), rows)))


# Dips times the square root of the number of values, which so large a share of uniform samples exceeds.
_DIP_SHARES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0005)
_DIPS = {
    50: (0.2223, 0.2665, 0.3091, 0.3452, 0.3873, 0.4583, 0.4969, 0.543, 0.5744, 0.6049, 0.6646, 0.6851),
    100: (0.2285, 0.2743, 0.3182, 0.3552, 0.3985, 0.472, 0.5107, 0.5584, 0.5912, 0.6222, 0.6898, 0.7153),
    200: (0.2337, 0.2797, 0.324, 0.3619, 0.4059, 0.4805, 0.5208, 0.569, 0.6033, 0.6343, 0.7018, 0.7278),
    500: (0.2384, 0.2851, 0.3301, 0.3683, 0.4127, 0.4888, 0.5305, 0.5799, 0.613, 0.6446, 0.7114, 0.7409),
    1000: (0.2405, 0.2881, 0.3334, 0.3716, 0.4161, 0.4928, 0.5342, 0.5833, 0.6172, 0.6471, 0.7177, 0.7459),
    2000: (0.2423, 0.2898, 0.3352, 0.3738, 0.4191, 0.4962, 0.5382, 0.5876, 0.6216, 0.6544, 0.729, 0.7515),
    5000: (0.244, 0.2917, 0.3374, 0.3761, 0.4219, 0.4994, 0.5409, 0.5928, 0.6286, 0.6607, 0.7275, 0.7563),
    10_000: (0.2452, 0.2926, 0.3381, 0.3769, 0.4226, 0.5001, 0.5428, 0.5941, 0.6304, 0.6625, 0.7337, 0.7584),
}


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
