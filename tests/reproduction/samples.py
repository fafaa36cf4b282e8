"""Whole numbers with a prescribed mean and standard deviation: status counts of runs, latencies of requests."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from reproduction.published import Figure

Ints = NDArray[np.int64]

_NEAR = 0.8e-6  # relative
_TRIALS = 1500
_BATCH = 20_000
_STEPS = 2000


def failures(wanted: Sequence[Figure], runs: int, requests: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Failed requests per class and run, shape (classes, runs), and all requests per run.

    The fractions of each class have the wanted mean and, where it is given, deviation (ddof 0) over runs. Where no
    whole numbers of `requests` give that, some runs have a few requests more or fewer, as real ones had. A random
    search for whole numbers with the right sums and sums of squares, then for the runs that differ in length.
    """
    sizes = np.full(runs, requests, dtype=np.int64)
    for _ in range(_TRIALS):
        counts = np.array([_whole(figure, sizes, random) for figure in wanted])
        if _error(wanted, counts[None], sizes[None])[0] <= 1:
            return counts, sizes
        # The class with most failures says how many requests more or fewer there must have been; the others follow.
        order = np.argsort(-counts.sum(axis=1), kind="stable")
        first, others = int(order[0]), [int(number) for number in order[1:]]
        for found, lengths in _lengths(wanted[first], counts[first], sizes, random):
            counts[first] = found
            if (
                all(_permuted(wanted[other], counts, other, lengths, random) for other in others)
                and (counts.sum(axis=0) <= lengths).all()
            ):
                return counts, lengths
    raise AssertionError(f"no counts of {requests} requests give {wanted}")


def _lengths(wanted: Figure, counts: Ints, sizes: Ints, random: np.random.Generator) -> list[tuple[Ints, Ints]]:
    """Orders of a class's counts with numbers of requests per run that give its figures; a few of them."""
    runs, requests = len(sizes), int(sizes[0])
    beyond = wanted.mean * runs * requests - counts.sum()
    fewer = round(beyond * requests * runs / counts.sum()) + int(random.integers(-1, 2))
    more, even = int(random.integers(0, 5)), np.full(runs, 1 / runs)
    spread = random.multinomial(abs(fewer), even, _BATCH) * np.sign(fewer)
    lengths = sizes - spread + random.multinomial(more, even, _BATCH) - random.multinomial(more, even, _BATCH)
    tried = random.permuted(np.tile(counts, (_BATCH, 1)), axis=1)
    fits = _error([wanted], tried[:, None], lengths) <= 1
    fits &= (np.abs(lengths - requests) <= max(1, requests // 200)).all(axis=1)
    return [(tried[place], lengths[place]) for place in np.flatnonzero(fits)[:40]]


def _permuted(wanted: Figure, counts: Ints, number: int, lengths: Ints, random: np.random.Generator) -> bool:
    """Bring one class's counts into an order that gives its figures with these numbers of requests, if there is one."""
    tried = random.permuted(np.tile(counts[number], (_BATCH, 1)), axis=1)
    errors = _error([wanted], tried[:, None], lengths[None])
    best = int(errors.argmin())
    counts[number] = tried[best]
    return bool(errors[best] <= 1)


def _whole(figure: Figure, sizes: Ints, random: np.random.Generator) -> Ints:
    """Whole counts of runs of equal size whose sum, and sum of squares if a deviation is wanted, are next to right."""
    runs, requests = len(sizes), int(sizes[0])
    exact = figure.mean * runs * requests
    total = round(exact)
    if abs(exact - total) >= 1e-4:
        total = int(exact) + int(random.integers(-2 if exact > 5000 else 0, 2))
    spread = figure.std if figure.std is not None else figure.mean / 10
    counts = np.rint((figure.mean + spread * random.normal(size=runs)) * requests).clip(0).astype(np.int64)
    while short := total - int(counts.sum()):
        place = random.integers(0, runs)
        counts[place] = max(0, counts[place] + int(np.sign(short)) * max(1, abs(short) // runs))
    if figure.std is None:
        return counts
    squares = requests**2 * runs * (figure.std**2 + figure.mean**2)
    if abs(exact - total) < 1e-4 and abs(squares - round(squares)) < 1e-3:
        goal = round(squares)
    else:
        # Runs with fewer requests have larger fractions of the same counts.
        fewer = (exact - total) * requests * runs / max(total, 1)
        goal = int(squares - 2 * fewer * squares / runs / requests) + int(random.integers(-1, 2))
    # The sum of squares is odd if the sum is.
    goal -= (goal - total) % 2
    for _ in range(_STEPS):
        off = goal - int((counts**2).sum())
        if off == 0:
            break
        # One request from run j to run i changes the sum of squares by this.
        gains = 2 * (counts[:, None] - counts[None, :] + 1.0) - off
        gains = np.abs(gains) * random.uniform(0.5, 1.5, gains.shape)
        gains[:, counts == 0] = np.inf
        np.fill_diagonal(gains, np.inf)
        i, j = np.unravel_index(int(gains.argmin()), gains.shape)
        step = max(1, min(int(abs(off) // (8 * (abs(int(counts[i] - counts[j])) + 1))), int(counts[j])))
        counts[i] += step
        counts[j] -= step
    return counts


def _error(wanted: Sequence[Figure], counts: Ints, sizes: Ints) -> NDArray[np.float64]:
    """The largest distance to any wanted figure, as a multiple of what is near enough; shape (tries,)."""
    shares = counts / sizes[:, None, :]
    found = np.zeros(len(counts))
    for number, figure in enumerate(wanted):
        own = shares[:, number]
        found = np.maximum(found, np.abs(own.mean(axis=1) - figure.mean) / max(_NEAR * figure.mean, 1e-12))
        if figure.std is not None:
            found = np.maximum(found, np.abs(own.std(axis=1) - figure.std) / max(_NEAR * figure.std, 1e-12))
    return found


def latencies(count: int, mean_ns: float, std_ns: float) -> Ints:
    """Positive whole latencies with this mean and deviation (ddof 0), log-normal in shape if that can be."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    spread = std_ns / mean_ns
    values = _log_normal(count, spread) if spread > 0 and count > 1 else np.ones(count)
    values = np.ones(count) if values is None else values
    if spread > 0 and count > 1:
        standard = _standardized(values)
        if standard is None or (1 + spread * standard).min() <= 0:
            standard = _two_values(count, spread)
        values = 1 + spread * standard
    return np.maximum(1, np.rint(mean_ns * values)).astype(np.int64)


def _standardized(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    std = values.std()
    return None if std == 0 else (values - values.mean()) / std


def _log_normal(count: int, spread: float) -> NDArray[np.float64] | None:
    """Quantiles of the log-normal distribution whose own relative deviation is `spread`, found by bisection."""
    # The normal quantile by the logistic's: near enough for a shape.
    probability = (np.arange(count) + 0.5) / count
    quantiles = np.log(probability / (1 - probability)) / 1.702
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        values = np.exp(middle * (quantiles - quantiles[-1]))
        low, high = (middle, high) if values.std() < spread * values.mean() else (low, middle)
    return values / values.mean()


def _two_values(count: int, spread: float) -> NDArray[np.float64]:
    """Standardized: one slow request in so many that the others stay positive."""
    found = np.full(count, -np.sqrt(1 / (count - 1)))
    found[-1] = np.sqrt(count - 1)
    assert spread * np.sqrt(1 / (count - 1)) < 1, "no positive latencies have such a deviation"
    return found


def run_means(runs: int, mean_ns: float, std_ns: float) -> list[float]:
    """Means of runs with this mean and deviation (ddof 0), evenly spread."""
    even: Sequence[float] = np.linspace(-1, 1, runs) if runs > 1 else np.zeros(1)
    scale = float(np.std(even)) or 1.0
    return [float(mean_ns + std_ns * step / scale) for step in even]
