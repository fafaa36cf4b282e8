"""Runs with a known shape: latencies in ns, in the order of sending, with noise as load tests have it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]

# Requests per second and seconds, so from 600 to 10,000 requests.
LOADS = [(60, 10), (100, 10), (200, 10), (100, 60), (1000, 10)]


@dataclass(frozen=True)
class Simulated:
    """`latencies_ns` of requests sent at `rate` per second, and the shape they were made with."""

    shape: str
    rate: float
    latencies_ns: NDArray[np.int64]

    @property
    def sent_ns(self) -> NDArray[np.int64]:
        return np.round(np.arange(self.latencies_ns.size) * 1e9 / self.rate).astype(np.int64)


def autocorrelated(rng: np.random.Generator, n: int, phi: float) -> Array:
    """An AR(1) process of variance 1."""
    start = rng.normal()
    innovations = rng.normal(size=n) * np.sqrt(1 - phi**2)
    innovations[0] = start
    found: Array = lfilter([1.0], [1.0, -phi], innovations)
    return found


def noise(rng: np.random.Generator, n: int) -> Array:
    """Of the logarithm of latency: white, autocorrelated, skewed, heavy-tailed, with rare spikes; median near 0."""
    scale = rng.uniform(0.1, 0.3)
    kind = rng.integers(5)
    if kind == 0:
        return scale * rng.normal(size=n)
    if kind == 1:
        return scale * autocorrelated(rng, n, rng.uniform(0.3, 0.9))
    if kind == 2:
        return scale * (rng.exponential(size=n) - 0.69)  # Pareto latencies, of index 3.3 and more
    if kind == 3:
        return np.clip(0.5 * scale * rng.standard_t(3, size=n), -5, 5)
    spikes = (rng.random(n) < 0.01) * rng.uniform(1, 4, size=n)
    return scale * rng.normal(size=n) + spikes


def flat(rng: np.random.Generator, n: int, rate: float) -> Array:
    return np.zeros(n)


def warming_up(rng: np.random.Generator, n: int, rate: float) -> Array:
    """Decays to a plateau, from 3 to 20 times its latency."""
    u = np.arange(n) / n
    return np.log(rng.uniform(3, 20)) * np.exp(-u / rng.uniform(0.04, 0.15))


def drifting_up(rng: np.random.Generator, n: int, rate: float) -> Array:
    """By a half to four times over the run: steadily, in latency or its logarithm, or ever more slowly."""
    total, u = rng.uniform(1.5, 4), np.arange(n) / n
    kind = rng.integers(3)
    if kind == 0:
        return np.log(total) * u
    if kind == 1:
        return np.log1p((total - 1) * u)
    return np.log(total) * np.sqrt(u)


def drifting_down(rng: np.random.Generator, n: int, rate: float) -> Array:
    total, u = rng.uniform(1.5, 4), np.arange(n) / n
    return -np.log(total) * u if rng.random() < 0.5 else np.log1p((total - 1) * (1 - u))


def changing_level(rng: np.random.Generator, n: int, rate: float) -> Array:
    """Between levels that differ by a half or more: once, there and back, or thrice."""
    changes = rng.integers(1, 4)
    edges = {
        1: [rng.uniform(0.35, 0.75)],
        2: [rng.uniform(0.2, 0.4), rng.uniform(0.55, 0.8)],
        3: [rng.uniform(0.2, 0.3), rng.uniform(0.42, 0.55), rng.uniform(0.68, 0.8)],
    }[int(changes)]
    at = np.searchsorted(edges, np.arange(n) / n)
    height = np.log(rng.uniform(1.5, 4)) * (1 if rng.random() < 0.5 else -1)
    return height * (at % 2)


def periodic(rng: np.random.Generator, n: int, rate: float) -> Array:
    """A sine, a saw or pulses, 6 to 40 times in the run and every 12 requests at most."""
    cycles = rng.uniform(6, min(40, n / 12))
    turn = (cycles * np.arange(n) / n + rng.random()) % 1
    height = np.log(rng.uniform(1.5, 4))
    kind = rng.integers(3)
    if kind == 0:
        return height * 0.5 * np.sin(2 * np.pi * turn)
    return height * (turn if kind == 1 else (turn < rng.uniform(0.15, 0.4)))


def several_modes(rng: np.random.Generator, n: int, rate: float) -> Array:
    """Two or three kinds of requests at random, the slower ones of at least 2.5 times the latency."""
    share = rng.uniform(0.25, 0.75)
    slower = rng.random(n) < share
    found = np.log(rng.uniform(2.5, 6)) * slower
    return found + np.log(3) * (slower & (rng.random(n) < 0.4)) if rng.random() < 0.3 else found


SHAPES: dict[str, Callable[[np.random.Generator, int, float], Array]] = {
    "flat": flat,
    "still warming up": warming_up,
    "drifting up": drifting_up,
    "drifting down": drifting_down,
    "changing level": changing_level,
    "periodic": periodic,
    "several modes": several_modes,
}


def labelled(seed: int, of_each: int) -> Iterator[Simulated]:
    """`of_each` runs of every shape, over all loads; a fifth of them from a clock of 0.1 ms."""
    rng = np.random.default_rng(seed)
    for shape, make in SHAPES.items():
        for number in range(of_each):
            rate, duration_s = LOADS[number % len(LOADS)]
            n = rate * duration_s
            wobble = noise(rng, n)
            if shape == "several modes":
                wobble = 0.15 * wobble / wobble.std()
            latencies_ns = np.exp(np.log(rng.uniform(2e6, 50e6)) + make(rng, n, rate) + wobble)
            if number % 5 == number // 5 % 5:
                latencies_ns = np.round(latencies_ns / 1e5) * 1e5
            yield Simulated(shape, rate, np.round(latencies_ns).astype(np.int64))
    for _ in range(of_each):
        n = int(rng.integers(1, 40))
        yield Simulated("too few", 10, np.round(np.exp(16 + noise(rng, n))).astype(np.int64))
