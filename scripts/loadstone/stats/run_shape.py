"""The shape of a run: what its latency does over its time, and whether it is of one kind.

Latencies in the order of sending -> one main shape, all shapes that hold, and the evidence. What counts as a shape is
both sure (by the tests named in `structure`, `trend`, `period` and `modes`) and large enough to matter, see `MATERIAL`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone.stats import blocks, period, structure, trend, warmup
from loadstone.stats.blocks import Array
from loadstone.stats.modes import dip

FLAT = "flat"
WARMING_UP = "still warming up"
DRIFTING_UP = "drifting up"
DRIFTING_DOWN = "drifting down"
CHANGING_LEVEL = "changing level"
UNEVEN = "uneven"
PERIODIC = "periodic"
SEVERAL_MODES = "several modes"
TOO_FEW = "too few"

# Of these the mean over a run is no figure of a steady state.
UNSETTLED = (WARMING_UP, DRIFTING_UP, DRIFTING_DOWN, CHANGING_LEVEL, UNEVEN)

_DRIFTING = (DRIFTING_UP, DRIFTING_DOWN)

FEWEST_REQUESTS = 40
# A change is material from a fifth of the latency on: over a run, from one level to another, from trough to peak. A
# steady drift of so much moves the mean of a run by a tenth.
MATERIAL = 1.2
# From here on halves are uneven that no model of the level explains. A burst of slow requests makes them so; noise with
# a memory of a tenth of the run does not (tests/stats/test_run_shape.py).
HALVES_RATIO = 2.0
# A slow start is, when it lengthens the mean of the whole run by this share of what it is afterwards.
WARMUP_SHARE = 0.05

_PERIOD_P = 1e-4
_DIP_P = 0.01
# Of the dip: what modes of a twentieth of all requests leave is less.
_LEAST_DIP = 0.015

# Schmeiser 1982, "Batch size effects in the analysis of simulation output", advises 10 to 30 batches.
_NOISE_BLOCKS = 25

# All that a shape depends on besides the run.
CODE = [
    (Path(__file__).parent / name).read_text("utf-8")
    for name in ("blocks.py", "modes.py", "period.py", "run_shape.py", "structure.py", "trend.py", "warmup.py")
]


@dataclass(frozen=True)
class RunShape:
    """What was found; None where there were too few requests to ask.

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

    Latencies come in whole `resolution_ns`; what they count in by themselves is used where that is more, or not known.
    `seed` chooses the dither.
    """
    n = latencies_ns.size
    if n < FEWEST_REQUESTS:
        return RunShape(TOO_FEW, (TOO_FEW,))
    resolution = max(resolution_ns or 1.0, blocks.step_ns(latencies_ns))
    logs = blocks.log_latencies(latencies_ns, resolution, seed)
    edges = blocks.bounds(n)
    series = blocks.without_blips(blocks.levels(logs, edges))
    found = structure.find(series)
    block = np.searchsorted(edges, np.arange(n), side="right") - 1
    settled = logs - found.fitted[block]
    repeating = period.find(settled)
    is_periodic = repeating is not None and repeating.p < _PERIOD_P and repeating.height > np.log(MATERIAL)
    if repeating is not None and repeating.profile is not None and is_periodic:
        settled = settled - repeating.profile
    start = edges[int(np.ceil(3 * found.time * series.size))] if found.kind == structure.DECAY else 0
    kinds = dip(settled[start:])
    slope, trend_p = trend.linear(series)
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
        warmup_requests=warmup.mser(latencies_ns),
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


def _over_time(found: structure.Structure) -> str | None:
    """What the level does, if it does something that matters."""
    first, last = found.fitted[0], found.fitted[-1]
    if found.kind == structure.FLAT or np.ptp(found.fitted) < np.log(MATERIAL):
        return None
    if found.kind == structure.CHANGES:
        return CHANGING_LEVEL
    if found.kind == structure.DECAY and abs(_start_share(found)) <= WARMUP_SHARE:
        return None
    if found.kind == structure.DECAY and first > last:
        return WARMING_UP
    return DRIFTING_UP if last > first else DRIFTING_DOWN


def _uneven(half_ratio: float) -> str | None:
    return None if 1 / HALVES_RATIO < half_ratio < HALVES_RATIO else UNEVEN


def _start_share(found: structure.Structure) -> float:
    """By how much a slow start lengthens the mean of the run over the level it ends at; below 0 for a fast start."""
    if found.kind != structure.DECAY:
        return 0.0
    return float(np.exp(found.fitted - found.fitted[-1]).mean() - 1)


def _noise(latencies_ns: NDArray[np.int64]) -> float | None:
    at = np.arange(_NOISE_BLOCKS + 1) * latencies_ns.size // _NOISE_BLOCKS
    means: Array = np.add.reduceat(latencies_ns.astype(float), at[:-1]) / np.diff(at)
    if means.mean() <= 0:
        return None
    return float(means.std(ddof=1) / np.sqrt(means.size) / means.mean())
