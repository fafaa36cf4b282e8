"""A server with several workers under open load, request by request: what a load generator would measure of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Measured:
    """Runs of one rate: arrays of shape (runs, requests). `latency_s` is what the client saw, at most its timeout."""

    rate: float
    sent_s: NDArray[np.float64]
    latency_s: NDArray[np.float64]
    ok: NDArray[np.bool_]

    @property
    def duration_s(self) -> float:
        """Of the sending."""
        return self.sent_s.shape[1] / self.rate

    def answered_share(self) -> NDArray[np.float64]:
        """Of each run: answered well for as long as requests were sent, from the first answer on, per request sent."""
        ends = self.sent_s + self.latency_s
        first = np.where(self.ok, ends, np.inf).min(axis=1, keepdims=True)
        return (self.ok & (ends <= first + self.duration_s)).mean(axis=1)


def attack(
    generator: np.random.Generator,
    rate: float,
    duration_s: float,
    runs: int,
    *,
    workers: int,
    mean_service_s: float,
    timeout_s: float = 30.0,
    gives_up: bool = False,
    poisson: bool = False,
    network_s: float = 0.0,
) -> Measured:
    """Requests at `rate` to `workers` who serve first come, first served, in exponential times (D/M/c or M/M/c).

    Kiefer & Wolfowitz 1955: a request takes the worker who is free first. With `gives_up` a request whose client no
    longer waits is not served; otherwise it is, in vain.
    """
    count = int(rate * duration_s)
    gaps = generator.exponential(1 / rate, (runs, count)) if poisson else np.full((runs, count), 1 / rate)
    sent = np.cumsum(gaps, axis=1) - gaps[:, :1]
    service = generator.exponential(mean_service_s, (runs, count))
    free = np.zeros((runs, workers))
    ended = np.empty((runs, count))
    every = np.arange(runs)
    for number in range(count):
        worker = free.argmin(axis=1)
        begun = np.maximum(free[every, worker], sent[:, number])
        done = begun + service[:, number]
        if gives_up:
            served = begun < sent[:, number] + timeout_s
            free[every, worker] = np.where(served, done, free[every, worker])
        else:
            free[every, worker] = done
        ended[:, number] = done
    latency = ended - sent + network_s
    return Measured(rate, sent, np.minimum(latency, timeout_s), latency < timeout_s)
