"""The outlying run of the bookinfo archive: plain at 120 requests/s of 2024-04-17, run 1.

Its requests are not known, but that it had spikes of up to 934 ms where run 2 had 55 ms at most, and mean and deviation
over the means of the ten runs, which fix its mean when the other nine are alike.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from loadstone.analysis.campaign_checks import Profile, suggest
from loadstone.stats.run_shape import classify

N = 1200


@pytest.fixture
def means_ms(shared: Path) -> tuple[float, float]:
    """Of run 1, and of each of the other nine."""
    wanted = {"graph": "bookinfo_shiver_6", "variant": "plain", "rate": "120", "kind": "latency"}
    with (shared / "prose/aggregates.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if wanted.items() <= row.items()]
    mean_ms, std_ms = (float(row[name]) * 1e3 for name in ("mean_s", "std_s"))
    return mean_ms + 3 * std_ms, mean_ms - std_ms / 3


def profile(run: int, latencies_ms: np.ndarray) -> Profile:
    latencies_ns = np.round(latencies_ms * 1e6).astype(np.int64)
    found = classify(latencies_ns, 1, seed=run)
    return Profile(
        "plain", 120, run, N, N, sound=True, failed_share=0.0, mean_ns=float(latencies_ns.mean()), noise=found.noise
    )


def test_run_1_is_an_outlier_beside_run_2_and_among_all_ten(means_ms: tuple[float, float]) -> None:
    first_ms, others_ms = means_ms
    assert (first_ms, others_ms) == (pytest.approx(20.3, abs=0.1), pytest.approx(13.6, abs=0.1))
    rng = np.random.default_rng(120)
    runs = [np.minimum(others_ms * np.exp(0.2 * rng.normal(size=N) - 0.02), 55.0) for _ in range(10)]
    spikes = rng.permutation(np.linspace(30, 934, round(N * (first_ms - others_ms) / (482 - others_ms))))
    runs[0][rng.choice(N, spikes.size, replace=False)] = spikes
    assert runs[0].mean() == pytest.approx(first_ms, rel=0.05)
    profiles = [profile(number, run) for number, run in enumerate(runs, 1)]
    for beside in (profiles[:2], profiles[:3], profiles):
        (found,) = suggest(beside)
        assert (found.kind, found.tag, found.run) == ("outlying run", "outlier", 1)
    assert suggest(profiles[1:3]) == suggest(profiles[1:]) == []
