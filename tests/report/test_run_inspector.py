"""What the run inspector shows of a run, recomputed request by request."""

import numpy as np
import pytest
from loadstone.analysis.run_requests import RunRequests
from loadstone.report import rate_data
from loadstone.report.numbers import Unit

NS = Unit("ns", "nanoseconds", 1)


def requests(latencies_ns: np.ndarray, seq: np.ndarray | None = None, warm_up: int = 0) -> RunRequests:
    size = len(latencies_ns)
    outcome = np.full(size, 1 + 8 + 16, np.uint8)
    outcome[:warm_up] = 1 + 8
    outcome[warm_up::7] |= 2
    numbers = np.arange(size) if seq is None else seq
    return RunRequests(numbers, np.zeros(size, np.int64), np.asarray(latencies_ns, np.int64), outcome, {})


def lognormal(size: int, seed: int, step: int = 1) -> np.ndarray:
    return np.maximum(np.random.default_rng(seed).lognormal(15, 0.8, size).astype(np.int64) // step * step, 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("step", [1, 1_000_000, 50_000_000])
def test_a_histogram_counts_every_request_once_in_its_bin(seed, step) -> None:
    values = lognormal(3000, seed, step)
    histogram = rate_data.of_run(requests(values), step, NS)["histogram"]
    low, end, high = histogram["edges"]
    assert low == pytest.approx(values.min()) and high >= values.max() * (1 - 1e-6)
    linear, log = histogram["linear"], histogram["log"]
    assert max(len(linear), len(log)) <= rate_data.HISTOGRAM_BINS
    assert sum(log) == values.size == sum(linear) + histogram["beyond"]
    if step > 1:
        width = (end - low) / len(linear)
        assert width / step == pytest.approx(round(width / step), rel=1e-4), "not narrower than the resolution"
        assert end >= np.quantile(values, 0.99)
        assert high / low >= (1 + step / low) ** len(log) * (1 - 1e-5) or len(log) == 1
    else:
        assert end == pytest.approx(np.quantile(values, 0.99), rel=1e-5)
        edges = [np.linspace(low, end, len(linear) + 1), np.geomspace(low, high, len(log) + 1)]
        for counts, own in zip((linear, log), edges, strict=True):
            expected, _ = np.histogram(values, own)
            assert np.abs(np.cumsum(expected) - np.cumsum(counts)).max() <= 2, "edges on the page are rounded"


@pytest.mark.parametrize("latencies_ns", [[5], [0, 0, 0], [7] * 3000])
def test_equal_latencies_have_histograms(latencies_ns) -> None:
    histogram = rate_data.of_run(requests(np.array(latencies_ns)), None, NS)["histogram"]
    assert sum(histogram["linear"]) == sum(histogram["log"]) == len(latencies_ns) and histogram["beyond"] == 0


@pytest.mark.parametrize("gap", [0, 1000])
def test_bins_of_a_long_run(gap) -> None:
    """Of consecutive numbers, equally many in each; a gap in the numbers is one of the bins."""
    size = 6000
    seq = np.arange(size) + (np.arange(size) >= 2000) * gap
    values = lognormal(size, 3)
    found = rate_data.of_run(requests(values, seq, warm_up=100), None, NS)
    assert "points" not in found and len(found["bins"]) <= rate_data.SEQUENCE_BINS
    counted = 0
    for first, last, failed, low, median, p99, high in found["bins"]:
        chosen = (seq >= max(first, 100)) & (seq <= last)
        own = values[chosen]
        counted += own.size
        assert failed == sum(1 for n in np.flatnonzero(chosen) if (n - 100) % 7 == 0)
        assert [low, median, high] == pytest.approx([own.min(), np.median(own), own.max()], rel=1e-5)
        assert p99 is None, "it takes 1,000 requests"
    assert counted == size - 100
    width = (size + gap - 100) / rate_data.SEQUENCE_BINS
    assert all(last - first <= width for first, last, *_ in found["bins"])


def test_huge_numbers_of_requests_are_no_reason_for_more_bins() -> None:
    seq = np.arange(3000) * 2**50
    found = rate_data.of_run(requests(lognormal(3000, 6), seq), None, NS)
    assert len(found["bins"]) == rate_data.SEQUENCE_BINS
    assert [each[0] for each in found["bins"]] == seq[::20].tolist()


def test_points_of_a_short_run() -> None:
    values = lognormal(500, 4)
    found = rate_data.of_run(requests(values, warm_up=50), None, NS)
    assert "bins" not in found
    points = found["points"]
    assert (points["seq"], points["failed"]) == (50, list(range(50, 500, 7)))
    assert points["latency_ns"] == values[50:].tolist()
    assert found["cdf"] == pytest.approx(np.quantile(values[50:], rate_data.SHARES), rel=1e-5)
    numbers = np.arange(500) * 2
    assert rate_data.of_run(requests(values, numbers), None, NS)["points"]["seq"] == numbers.tolist()


def test_a_run_of_warm_ups_alone_has_nothing() -> None:
    assert rate_data.of_run(requests(lognormal(50, 5), warm_up=50), None, NS) == {}
