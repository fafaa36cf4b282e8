"""Runs as they are in truth: each has a level of its own, and its requests resemble their predecessors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from loadstone.stats import Sample
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri

PERSISTENCE = 0.8
NORMAL = {"p50": 0.0, "p90": 1.2815515655, "p99": 2.3263478740}


def history_cell(timestamp: str, rate: float = 1.0) -> dict[str, Any]:
    """What `history_cells.sql` says of how a campaign's cell was measured, without any figure."""
    return {
        "app": "demo",
        "host": "here",
        "timestamp": timestamp,
        "variant": "plain",
        "rate": rate,
        "load_model": "open",
        "generator": "vegeta",
        "sent_by": "paced",
        "sent_alike": "paced",
        "protocol": "",
        "replicas": None,
        "evidence": "requests",
        "resolution_ns": 1.0,
    }


@dataclass(frozen=True)
class Truth:
    """Log-normal latencies: deviations of their logarithm between runs, between blocks and within runs.

    `failing` is the share of requests that fail, in clusters, with `unevenness` between runs.
    """

    between: float = 0.15
    within: float = 0.4
    failing: float = 0.02
    unevenness: float = 0.2
    rate: float = 100.0

    def figures(self) -> dict[str, float]:
        """What is true of all runs together."""
        total = np.hypot(self.between, self.within)
        found = {name: float(np.exp(15 + z * total)) for name, z in NORMAL.items()}
        found["mean"] = float(np.exp(15 + total**2 / 2))
        return found | {"error_fraction": self.failing, "throughput": self.rate * (1 - self.failing)}

    def runs(
        self, generator: np.random.Generator, runs: int, requests: int, block: NDArray[np.float64] | float = 0.0
    ) -> list[Sample]:
        """So many runs; `block` is added to the logarithms of each, shape (runs, 1)."""
        level = self.between * generator.normal(size=(runs, 1)) + block
        logs = 15 + level + self.within * persistent(generator, runs, requests)
        bound = ndtri(self.failing) * np.hypot(1, self.unevenness)
        failed = persistent(generator, runs, requests) < bound + self.unevenness * generator.normal(size=(runs, 1))
        return [sample(np.exp(each), of, self.rate) for each, of in zip(logs, failed, strict=True)]


def persistent(generator: np.random.Generator, runs: int, requests: int) -> NDArray[np.float64]:
    """A stationary AR(1) process of variance 1 for each run."""
    noise = generator.normal(size=(runs, requests)) * np.sqrt(1 - PERSISTENCE**2)
    start = PERSISTENCE * generator.normal(size=(runs, 1))
    return lfilter([1], [1, -PERSISTENCE], noise, axis=1, zi=start)[0]


def sample(latencies_ns, failed=None, rate: float = 100.0, censored=None) -> Sample:
    """One run whose outcomes are all known."""
    latencies = np.asarray(latencies_ns).astype(np.int64)
    none = np.zeros(latencies.size, dtype=bool)
    failing = none if failed is None else np.asarray(failed)
    late = none if censored is None else np.asarray(censored)
    return Sample(latencies, ~none, failing | late, late, ~(failing | late), latencies.size / rate)
