"""Intervals for the statistics of a cell. The run is the unit of replication.

Method: a two-level bootstrap. A replicate draws runs with replacement and, within each drawn run, blocks of
consecutive requests with replacement (requests that follow each other resemble each other, so they are never drawn one
by one); Davison & Hinkley 1997, *Bootstrap Methods and their Application*, section 3.8, and Künsch 1989 for blocks.
With three to ten runs the percentiles of such replicates are far too narrow. Therefore the replicates only give the
standard error, of the logarithm since latencies are skewed, widened by sqrt(n / (n - 1)) for what resampling n runs
loses, and the interval is that of Student's t with n - 1 degrees of freedom; Hesterberg 2015, *What Teachers Should
Know About the Bootstrap*, The American Statistician 69(4), sections 3.3 and 5.1.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]

_REPLICATES = 400
# Schmeiser 1982, "Batch size effects in the analysis of simulation output", advises 10 to 30 batches.
_BLOCKS_PER_RUN = 25
_BEYOND = 10


def estimable(requests: int, probability: float) -> bool:
    """Whether a sample supports this percentile: at least ten requests are expected beyond it.

    The number beyond it is binomial; ten expected on the rarer side is the customary condition for treating that as
    more than chance (the success/failure condition of Moore, McCabe & Craig, *Introduction to the Practice of
    Statistics*). p99 takes 1,000 requests, p99.9 takes 10,000.
    """
    return requests * min(probability, 1 - probability) >= _BEYOND - 1e-9


def seed(*key: object) -> int:
    """A seed that depends on the key alone, so that the same data always give the same interval."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big")


def intervals(
    runs: Sequence[NDArray[np.int64]],
    probabilities: Mapping[str, float],
    seed: int,
    confidence: float = 0.95,
) -> dict[str, Interval]:
    """Intervals of the pooled ``mean`` and of the named percentiles, in the unit of the data.

    `runs` holds each run's latencies in the order in which they were sent. Empty for fewer than two runs: one run says
    nothing of how runs differ. A statistic that is not positive has no interval.
    """
    runs = [run for run in runs if run.size]
    if len(runs) < 2:
        return {}
    pooled = np.concatenate(runs)
    edges = _edges(pooled)
    counts, sums = _blocks(runs, edges)
    weights = _weights(len(runs), counts.shape[0] // len(runs), np.random.default_rng(seed))
    replicated = {"mean": (weights @ sums) / (weights @ counts.sum(axis=1))}
    cumulated = np.cumsum(weights @ counts, axis=1)
    for name, probability in probabilities.items():
        replicated[name] = _quantiles(cumulated, edges, probability)
    values = dict(zip(probabilities, np.quantile(pooled, list(probabilities.values())), strict=True))
    values["mean"] = pooled.mean()
    return {
        name: _interval(float(values[name]), replicates, len(runs), confidence)
        for name, replicates in replicated.items()
        if values[name] > 0 and np.all(replicates > 0)
    }


def _interval(value: float, replicates: NDArray[np.float64], runs: int, confidence: float) -> Interval:
    # Here, since most jobs need no interval and it takes as long to import as all else; scipy.stats takes thrice that.
    from scipy.special import stdtrit  # noqa: PLC0415

    error = float(np.std(np.log(replicates), ddof=1)) * np.sqrt(runs / (runs - 1))
    factor = float(np.exp(stdtrit(runs - 1, (1 + confidence) / 2) * error))
    return value / factor, value * factor


def _edges(pooled: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bin edges at quantiles of all requests, finer towards the tail; the first bin begins below the least value."""
    tail = 1 - np.geomspace(0.1, 1e-5, 240)
    found = np.unique(np.quantile(pooled, np.concatenate([np.linspace(0, 0.9, 260), tail, [1.0]])))
    return np.concatenate([[found[0] - 1], found])


def _blocks(
    runs: Sequence[NDArray[np.int64]], edges: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Requests per bin, shape (blocks of all runs, bins), and latency sums, shape (blocks,); each run has as many."""
    blocks = min(_BLOCKS_PER_RUN, *(run.size for run in runs))
    bins = len(edges) - 1
    counts, sums = [], []
    for run in runs:
        block = np.arange(run.size) * blocks // run.size
        cell = block * bins + np.searchsorted(edges, run, side="left") - 1
        counts.append(np.bincount(cell, minlength=blocks * bins).reshape(blocks, bins))
        sums.append(np.bincount(block, weights=run, minlength=blocks))
    return np.concatenate(counts).astype(np.float32), np.concatenate(sums)


def _weights(runs: int, blocks: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """How often each replicate draws each block, shape (replicates, runs * blocks)."""
    drawn = generator.multinomial(runs, np.full(runs, 1 / runs), size=_REPLICATES)
    within = generator.multinomial(drawn * blocks, np.full(blocks, 1 / blocks))
    return within.reshape(_REPLICATES, runs * blocks).astype(np.float32)


def _quantiles(cumulated: NDArray[np.float32], edges: NDArray[np.float64], probability: float) -> NDArray[np.float64]:
    """The percentile of each replicate, interpolated within its bin."""
    target = probability * cumulated[:, -1]
    rows = np.arange(len(cumulated))
    bins = np.minimum((cumulated < target[:, None]).sum(axis=1), cumulated.shape[1] - 1)
    before = np.where(bins > 0, cumulated[rows, bins - 1], 0)
    inside = np.maximum(cumulated[rows, bins] - before, 1)
    share = np.clip((target - before) / inside, 0, 1)
    found: NDArray[np.float64] = edges[bins] + share * (edges[bins + 1] - edges[bins])
    return found
