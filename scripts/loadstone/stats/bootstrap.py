"""Standard errors and intervals of the figures of some runs by a bootstrap. The run is the unit of replication.

Method: a bootstrap at two levels. A replicate draws runs with replacement and, within each drawn run, blocks of
consecutive requests with replacement (requests that follow each other resemble each other, so they are never drawn one
by one); Davison & Hinkley 1997, *Bootstrap Methods and their Application*, section 3.8, and Künsch 1989 for blocks,
whose length is estimated from the data (`block_length`).

With three to ten runs the percentiles of such replicates are far too narrow, and their variance includes the variance
within runs twice, since drawn runs differ by it already (Davison & Hinkley, ibid.). Therefore replicates only give the
standard error: their variance less that of replicates in which only blocks are drawn, times n / (n - 1), which corrects
for resampling n runs. Runs that agree far better than their own noise do so by chance: the error is never less than
half of that within runs. The interval is that of Student's t with n - 1 degrees of freedom on a scale on which the
figure is nearly symmetric: the logarithm, or the logit of a share; Hesterberg 2015, *What Teachers Should Know About
the Bootstrap*, The American Statistician 69(4), sections 3.3 and 5.1.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.percentiles import ERRORS, MEAN, THROUGHPUT
from loadstone.stats.latencies import Latencies, estimable

Interval = tuple[float, float]
Floats = NDArray[np.float64]

_REPLICATES = 400
_MAX_BLOCKS = 50  # per run: more only take more time
_CENSORED_SHARE = 0.01  # of replicates; so few are set to the last latency that is known
_MIN_SHARE = 1 / 4  # the least total variance, as a share of that within runs
_EQUAL_RATES = 1.01  # rates within this ratio are equal
_FEWEST_VALUES = 10  # needed to estimate their dependence


def seed(*key: object) -> int:
    """A seed that depends only on the key, so that the same data always give the same interval."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Sample:
    """The requests of one run in the order in which they were sent; all arrays have their number as length.

    `latencies_ns` of requests that timed out (`censored`) are lower limits. `has_outcome` marks requests with a known
    outcome, `failed` those of them that failed, `completed` those that count for throughput, over `span_s` seconds
    (None: unknown). Latencies of `limit_ns` or more are never known, since such requests time out.
    """

    latencies_ns: NDArray[np.int64]
    has_outcome: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    censored: NDArray[np.bool_]
    completed: NDArray[np.bool_]
    span_s: float | None
    limit_ns: float | None = None


@dataclass(frozen=True)
class Replicates:
    """Figures of some runs and their bootstrap replicates, by the name of the statistic.

    Statistics are ``mean`` and percentiles of latency (ns), ``error_fraction`` and ``throughput`` (requests/s, both
    means over runs). For `draws` runs and blocks are drawn, for `within` only blocks of the same runs; shape
    (replicates,). One run has no `draws`. Replicates of equally many runs with the same seed of runs drew the same
    positions: those of two variants whose runs are paired may be subtracted one by one. A statistic without a value
    can't be estimated. One without draws has no interval: there is one run, or with other runs like these it would fall
    among requests that time out. Its lower limit then has a name of its own (`at_least`), with everything beyond the
    first timeout cut off. `offered` are requests sent per second, if runs agree. Latencies from `limit_ns` on are not
    known.
    """

    values: Mapping[str, float]
    draws: Mapping[str, Floats]
    within: Mapping[str, Floats]
    n_runs: int
    n_blocks: int
    n_requests: int = 0
    n_timeouts: int = 0
    offered: float | None = None
    limit_ns: float | None = None

    def error(self, statistic: str) -> float:
        """The standard error of a statistic, in its unit. KeyError without draws."""
        return standard_error(self.draws[statistic], self.within[statistic], self.n_runs)


def standard_error(draws: Floats, within: Floats, n_runs: int) -> float:
    """The standard error of any figure from its replicates, as described above; nan for fewer than two runs.

    `draws` and `within` are values of that figure for each replicate: for a ratio of two variants, for instance, the
    differences of logarithms.
    """
    if n_runs < 2:
        return float("nan")
    noise = float(np.var(within, ddof=1))
    between = (float(np.var(draws, ddof=1)) - noise) * n_runs / (n_runs - 1)
    return float(np.sqrt(max(between, noise * _MIN_SHARE)))


def at_least(statistic: str) -> str:
    """The name of the lower limit, in `Replicates`, of a percentile that falls among requests that timed out."""
    return f"{statistic} at least"


def t_factor(confidence: float, freedom: float) -> float:
    """The half width of an interval in standard errors; `freedom` in degrees."""
    # Imported here, since most jobs need no interval and this takes as long as all other imports; scipy.stats takes
    # three times that.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(freedom, (1 + confidence) / 2))


def interval(found: Replicates, statistic: str, confidence: float = 0.95) -> Interval | None:
    """The interval of a statistic in its unit.

    None for fewer than two runs, if it is not positive, and if it would include latencies that time out: its end is
    then unknown.
    """
    if statistic not in found.draws or found.n_runs < 2:
        return None
    value, draws, within = found.values[statistic], found.draws[statistic], found.within[statistic]
    factor = t_factor(confidence, found.n_runs - 1)
    if statistic == ERRORS:
        return _share_interval(value, factor * found.error(ERRORS), found.n_blocks, confidence)
    if statistic == THROUGHPUT and found.offered:
        # The share of requests without an answer is as skewed as the error fraction.
        missing, reach = max(0.0, 1 - value / found.offered), factor * found.error(THROUGHPUT) / found.offered
        low, high = _share_interval(missing, reach, found.n_blocks, confidence)
        return found.offered * (1 - high), found.offered * (1 - low)
    if value <= 0 or not (np.all(draws > 0) and np.all(within > 0)):
        return None
    reach = float(np.exp(factor * standard_error(np.log(draws), np.log(within), found.n_runs)))
    return None if found.limit_ns and value * reach >= found.limit_ns else (value / reach, value * reach)


def _share_interval(share: float, reach: float, n_blocks: int, confidence: float) -> Interval:
    """The interval of a share, through its logit; of 0 or 1 that of Clopper & Pearson 1934, over blocks."""
    if share in (0, 1):
        beyond = float(1 - ((1 - confidence) / 2) ** (1 / max(n_blocks, 1)))
        return (0.0, beyond) if share == 0 else (1 - beyond, 1.0)
    logit, width = np.log(share / (1 - share)), reach / (share * (1 - share))
    low, high = (float(1 / (1 + np.exp(-np.clip(logit + way * width, -700, 700)))) for way in (-1, 1))
    return low, high


def replicate(
    runs: Sequence[Sample], probabilities: Mapping[str, float], runs_seed: int, blocks_seed: int
) -> Replicates:
    """Replicates of the mean, of the named percentiles, of the error fraction and of throughput.

    `runs` without requests are ignored. Percentiles that the sample doesn't support are not computed. If requests timed
    out, neither are the mean and the percentiles that fall among them; percentiles that do so in more than one in a
    hundred replicates have no draws. Of both only the lower limit (`at_least`) is computed.
    """
    runs = [run for run in runs if run.latencies_ns.size]
    if not runs:
        return Replicates({}, {}, {}, 0, 0)
    pooled = Latencies.pooled((run.latencies_ns, run.censored) for run in runs)
    censored = pooled.censoring(probabilities)
    first_ns = float("inf") if pooled.first_timeout_ns is None else float(pooled.first_timeout_ns)
    last_ns = float(pooled.ordered_ns[pooled.known - 1]) if pooled.known else 0.0  # that is known
    n_requests, n_timeouts, mean_ns = pooled.size, pooled.n_timeouts, pooled.mean()
    wanted = {name: share for name, share in probabilities.items() if estimable(n_requests, share)}
    latencies_ns = pooled.ordered_ns
    quantiles = dict(zip(wanted, _quantiles_in_place(latencies_ns, [*wanted.values()]).tolist(), strict=True))
    edges = _bin_edges(latencies_ns, last_ns) if wanted else None
    del pooled, latencies_ns  # of many requests they are large
    of_latency = {name: value for name, value in quantiles.items() if not censored[name]}
    if not censored[MEAN]:
        of_latency[MEAN] = mean_ns
    whole_runs = _Blocks(runs, 1, None)
    values = of_latency | {
        name: float(found[0]) for name, found in whole_runs.rates(np.ones((1, len(runs), 1))).items()
    }
    blocks = _Blocks(runs, _number_of_blocks(runs), edges)
    times = np.random.default_rng(runs_seed).multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=_REPLICATES)
    generator = np.random.default_rng(blocks_seed)
    once = np.ones((_REPLICATES, len(runs)), dtype=np.int64)
    both = blocks.statistics(blocks.drawn(times, generator), wanted, values)
    within = blocks.statistics(blocks.drawn(once, generator), wanted, values)
    unknown = [name for name in wanted if censored[name] or np.mean(both[name] > last_ns) > _CENSORED_SHARE]
    for drawn in (both, within):
        drawn |= {at_least(name): np.where(drawn[name] > last_ns, first_ns, drawn[name]) for name in unknown}
        drawn |= {name: np.minimum(drawn[name], last_ns) for name in wanted}
    values |= {at_least(name): first_ns if quantiles[name] > last_ns else quantiles[name] for name in unknown}
    return Replicates(
        values=values,
        draws={name: each for name, each in both.items() if name not in unknown} if len(runs) > 1 else {},
        within={name: each for name, each in within.items() if name in values},
        n_runs=len(runs),
        n_blocks=blocks.number * len(runs),
        n_requests=n_requests,
        n_timeouts=n_timeouts,
        offered=blocks.offered(),
        limit_ns=_latency_limit_ns(runs, first_ns),
    )


def _latency_limit_ns(runs: Sequence[Sample], first_ns: float) -> float | None:
    """The latency from which on none is known: `first_ns`, that of the first timeout, or the declared limit."""
    declared = min((run.limit_ns for run in runs if run.limit_ns is not None), default=float("inf"))
    known = max(int(run.latencies_ns.max(initial=0, where=~run.censored)) for run in runs)
    least = min(first_ns, declared if known < declared else float("inf"))
    return least if np.isfinite(least) else None


def _number_of_blocks(runs: Sequence[Sample]) -> int:
    """The number of blocks of each run, from the typical dependence of latencies and of failures within runs."""
    numbers = []
    for run in runs:
        length = block_length(np.log(np.maximum(run.latencies_ns, 1)))
        if run.failed.any():
            length = max(length, block_length(run.failed.astype(np.float64)))
        numbers.append(run.latencies_ns.size / length)
    fewest = min(run.latencies_ns.size for run in runs)
    return max(1, min(int(np.median(numbers)), fewest, _MAX_BLOCKS))


def _bin_edges(pooled: NDArray[np.int64], last_ns: float) -> Floats:
    """Bin edges at quantiles of all requests, finer in the tail, and at `last_ns`, the last latency that is known.

    The first bin starts below the least value.
    """
    tail = 1 - np.geomspace(0.1, 1e-5, 240)
    found = np.unique(_quantiles_in_place(pooled, np.concatenate([np.linspace(0, 0.9, 260), tail, [1.0]])))
    found = np.union1d(found, [last_ns]) if last_ns > found[0] else found
    below = min(found[0] - 1, np.nextafter(found[0], -np.inf))
    return np.concatenate([[below], found])


def _quantiles_in_place(values: NDArray[np.int64], shares: Sequence[float] | Floats) -> Floats:
    """Without a copy of the values, whose order may change."""
    return np.asarray(np.quantile(values, shares, overwrite_input=True))


class _Blocks:
    """Runs cut into equally many blocks, with the counts and sums of each block."""

    def __init__(self, runs: Sequence[Sample], number: int, edges: Floats | None) -> None:
        self.number, self.edges = number, edges
        counts, sums = [], []
        for run in runs:
            size = run.latencies_ns.size
            block = np.arange(size) * number // size
            of_block = [np.ones(size), run.latencies_ns, run.has_outcome, run.failed, run.completed]
            sums.append([np.bincount(block, weights=of, minlength=number) for of in of_block])
            if edges is not None:
                bins = len(edges) - 1
                cell = block * bins + np.searchsorted(edges, run.latencies_ns, side="left") - 1
                counts.append(np.bincount(cell, minlength=number * bins).reshape(number, bins))
        self.sums = np.array(sums).transpose(1, 0, 2)  # shape (5, runs, blocks)
        self.counts = np.concatenate(counts).astype(np.float32) if counts else None  # shape (runs * blocks, bins)
        spans = [run.span_s for run in runs]
        self.rates_sent = (
            np.array([run.latencies_ns.size / run.span_s for run in runs if run.span_s]) if all(spans) else None
        )

    def drawn(self, times: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float32]:
        """How often each replicate draws each block, shape (replicates, runs, blocks); `times` it draws each run."""
        even = np.full(self.number, 1 / self.number)
        return generator.multinomial(times * self.number, even).astype(np.float32)

    def offered(self) -> float | None:
        """Requests sent per second, if that differs by at most one per cent between runs."""
        rates = self.rates_sent
        if rates is None or rates.max() > _EQUAL_RATES * rates.min():
            return None
        return float(rates.mean())

    def statistics(
        self, weights: NDArray[np.float32], probabilities: Mapping[str, float], wanted: Mapping[str, float]
    ) -> dict[str, Floats]:
        """Every statistic that is `wanted`, of each replicate."""
        found = self.rates(weights)
        flat = weights.reshape(len(weights), -1)
        if MEAN in wanted:
            requests, latencies_ns = self.sums[0].ravel(), self.sums[1].ravel()
            found[MEAN] = (flat @ latencies_ns) / (flat @ requests)
        if self.counts is not None and self.edges is not None:
            cumulated = np.cumsum(flat @ self.counts, axis=1)
            for name, probability in probabilities.items():
                found[name] = _quantiles(cumulated, self.edges, probability)
        return found

    def rates(self, weights: NDArray[np.floating]) -> dict[str, Floats]:
        """Means over runs of the error fraction and of requests completed per second, as far as they are known."""
        requests, _, known, failed, completed = np.einsum("rnb,snb->srn", weights, self.sums, optimize=True)
        runs_drawn = weights.sum(axis=2) / self.number
        found = {}
        if np.all(self.sums[2].sum(axis=1) > 0):
            share = np.divide(failed, known, out=np.zeros_like(failed), where=known > 0)
            found[ERRORS] = (runs_drawn * share).sum(axis=1) / (runs_drawn * (known > 0)).sum(axis=1)
        if self.rates_sent is not None:
            share = np.divide(completed, requests, out=np.zeros_like(completed), where=requests > 0)
            found[THROUGHPUT] = (runs_drawn * share * self.rates_sent).sum(axis=1) / runs_drawn.sum(axis=1)
        return found


def _quantiles(cumulated: NDArray[np.float32], edges: Floats, probability: float) -> Floats:
    """The percentile of each replicate, interpolated within its bin."""
    target = probability * cumulated[:, -1]
    rows = np.arange(len(cumulated))
    bins = np.minimum((cumulated < target[:, None]).sum(axis=1), cumulated.shape[1] - 1)
    before = np.where(bins > 0, cumulated[rows, bins - 1], 0)
    inside = np.maximum(cumulated[rows, bins] - before, 1)
    share = np.clip((target - before) / inside, 0, 1)
    found: Floats = edges[bins] + share * (edges[bins + 1] - edges[bins])
    return found


def block_length(values: NDArray[np.float64]) -> float:
    """The block length that minimises the error of a block bootstrap of the mean; 1 for fewer than ten values.

    Politis & White 2004, *Automatic Block-Length Selection for the Dependent Bootstrap*, Econometric Reviews 23(1),
    section 3, as corrected by Patton, Politis & White 2009, ibid. 28(4): of the circular block bootstrap. The same as
    ``arch.bootstrap.optimal_block_length``, which loads pandas (jobs do without).
    """
    n = len(values)
    if n < _FEWEST_VALUES or values.min() == values.max():
        return 1.0
    centred = values - values.mean()
    longest = np.ceil(min(3 * np.sqrt(n), n / 3))
    insignificant = max(5, int(np.log10(n)))  # lags in a row
    most = min(int(np.ceil(np.sqrt(n))) + insignificant, n - 2)
    covariances = _covariances(centred, most)
    window = 2 * max(_last_significant(centred, covariances * n, insignificant), 1)
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


def _last_significant(centred: NDArray[np.float64], products: NDArray[np.float64], number: int) -> int:
    """The lag after which `number` autocorrelations in a row are insignificant; the last lag if there is none."""
    n, most = len(centred), len(products) - 1
    squares = np.cumsum(centred**2)
    lags = np.arange(most + 1)
    ahead, behind = squares[-1] - squares[lags], squares[n - lags - 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.abs(products) / np.sqrt(ahead * behind) < 2 * np.sqrt(np.log10(n) / n)
    for lag in range(number, most + 1):
        if small[lag - number : lag].all():
            return lag - number
    return most
