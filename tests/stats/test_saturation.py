"""Knees, against servers whose capacity is known: workers / mean service time."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from loadstone.stats.saturation import Estimate, Knee, Load, at_share, knee, ratio_of
from scipy.stats import t as student
from support.queues import Measured, attack

SIMULATED = 150


def estimate(runs: np.ndarray) -> Estimate:
    """Mean over runs with Student's interval."""
    mean = float(runs.mean())
    reach = float(student.ppf(0.975, len(runs) - 1) * runs.std(ddof=1) / np.sqrt(len(runs)))
    return Estimate(mean, mean - reach, mean + reach)


def load_of(measured: Measured, *, throughput: bool = True) -> Load:
    medians = estimate(np.log(np.median(measured.latency_s, axis=1) * 1e9))
    latency = Estimate(*np.exp([medians.value, medians.low, medians.high]))
    share = estimate(measured.answered_share()) if throughput else None
    return Load(measured.rate, measured.sent_s.shape[1], latency, share, measured.duration_s)


def sweeps(seed: int, least: float, lowest_top: float, highest_top: float) -> Iterator[tuple[float, list[Measured]]]:
    """Capacity and measurements of servers of many kinds, at 5 to 14 rates up to a share of the capacity."""
    generator = np.random.default_rng(seed)
    for _ in range(SIMULATED):
        workers = int(generator.choice([1, 2, 4, 8, 16, 32]))
        capacity = float(generator.uniform(50, 250))
        low, high = capacity * generator.uniform(least, 0.3), capacity * generator.uniform(lowest_top, highest_top)
        space = np.linspace if generator.random() < 0.5 else np.geomspace
        service_s = workers / capacity
        runs, duration_s = int(generator.integers(3, 11)), float(generator.choice([5, 10]))
        timeout_s = max(float(generator.choice([30, 1, 0.5])), 20 * service_s)
        server = {"workers": workers, "mean_service_s": service_s, "timeout_s": timeout_s}
        server |= {"gives_up": generator.random() < 0.5, "poisson": generator.random() < 0.5}
        yield (
            capacity,
            [
                attack(generator, float(rate), duration_s, runs, **server)
                for rate in space(low, high, int(generator.integers(5, 15)))
            ],
        )


def covers(found: Knee, capacity: float) -> bool:
    return (found.low or 0) <= capacity <= (found.high or np.inf)


@pytest.mark.slow
def test_the_interval_covers_the_capacity_of_simulated_servers():
    by_throughput, by_latency, bounded, ratios = [], [], [], []
    for capacity, measured in sweeps(1, 0.05, 1.15, 2):
        found = knee([load_of(each) for each in measured])
        by_throughput.append(covers(found, capacity))
        by_latency.append(covers(knee([load_of(each, throughput=False) for each in measured]), capacity))
        bounded.append(found.rate is not None)
        ratios.append(found.rate / capacity if found.rate else np.nan)
    assert np.mean(by_throughput) >= 0.95
    assert np.mean(by_latency) >= 0.95
    assert np.mean(bounded) >= 0.9  # an interval without ends covers everything
    assert 0.9 < np.nanmedian(ratios) < 1.05
    assert np.nanquantile(ratios, 0.05) > 0.7


@pytest.mark.slow
def test_a_server_within_its_capacity_has_no_knee():
    found = [knee([load_of(each) for each in measured]) for _, measured in sweeps(2, 0.05, 0.5, 0.97)]
    assert np.mean([each.high is None for each in found]) >= 0.98
    assert all("sustained up to" in (each.problem or "") for each in found if each.high is None and each.low)


@pytest.mark.slow
def test_neither_has_one_whose_latency_alone_is_known():
    found = [knee([load_of(each, throughput=False) for each in measured]) for _, measured in sweeps(3, 0.05, 0.5, 0.9)]
    assert np.mean([each.high is None for each in found]) >= 0.98


# --- single cases -----------------------------------------------------------------------------------------------------


def loads(shares: Sequence[float | None], latencies_ms: Sequence[float], spread: float = 0.01) -> list[Load]:
    """Loads at 100, 200, ... requests/s of 10 s, each with intervals of so many percent on either side."""

    def around(value: float) -> Estimate:
        return Estimate(value, value * (1 - spread), value * (1 + spread))

    return [
        Load(100.0 * nth, 1000.0 * nth, around(latency * 1e6), None if share is None else around(share), 10.0)
        for nth, (share, latency) in enumerate(zip(shares, latencies_ms, strict=True), start=1)
    ]


def test_between_what_is_carried_and_what_is_not_lies_the_knee():
    found = knee(loads([1, 1, 0.9, 0.7], [10, 12, 600, 2000]))
    assert (found.low, found.high, found.by, found.problem) == (200, 300, "throughput", None)
    assert found.rate == pytest.approx(270)  # 300 were asked for, nine tenths of them answered
    assert found.beyond == (300, 400)
    assert [state for _, state in found.states] == ["carried", "carried", "beyond", "beyond"]


def test_what_falls_short_with_a_flat_latency_is_told_by_throughput():
    found = knee(loads([0.955, 0.6, 0.6], [10, 10, 10]))
    assert (found.low, found.high, found.by) == (None, 200, "throughput")
    assert [state for _, state in found.states] == ["near", "beyond", "beyond"]


def test_a_rate_whose_latency_left_its_plateau_is_not_surely_carried():
    found = knee(loads([1, 1, 1, 0.7], [10, 12, 60, 2000]))
    assert (found.low, found.high, found.by) == (200, 400, "latency")
    assert found.rate == pytest.approx(300)
    assert found.beyond == (400,)


def test_a_plateau_that_sinks_first_is_none_that_was_left():
    found = knee(loads([1, 1, 1, 0.7], [18, 14, 13, 2000]))
    assert (found.low, found.high) == (300, 400)


def test_what_was_not_reached_is_open():
    found = knee(loads([1, 1, 1], [10, 11, 12]))
    assert (found.rate, found.low, found.high, found.by, found.beyond) == (None, 300, None, None, ())
    assert found.problem == "sustained up to 300 requests/s, the highest rate measured"
    left = knee(loads([1, 1, 1], [10, 11, 60]))
    assert (left.rate, left.low, left.high, left.by) == (None, 200, None, "latency")
    assert left.problem == "certainly sustained up to 200 requests/s; at 300 latency left its plateau"
    unsure = Load(300, 3000, Estimate(10e6, 9e6, 11e6), Estimate(0.93, 0.85, 0.99), 10)
    short = knee([*loads([1, 1], [10, 11]), unsure])
    assert short.by == "throughput"
    assert short.problem == "certainly sustained up to 200 requests/s; at 300 throughput may have fallen short"


def test_a_variant_that_is_overloaded_from_the_start_is_open_below():
    found = knee(loads([0.6, 0.3], [900, 3000]))
    assert (found.rate, found.low, found.high) == (None, None, 100)
    assert (
        found.problem == "already beyond saturation at the lowest rate, 100 requests/s, where 60% of requests succeeded"
    )


def test_a_rate_that_fell_short_below_one_that_was_carried_is_odd():
    found = knee(loads([1, 0.8, 1, 0.7], [10, 10, 10, 2000]))
    assert (found.low, found.high) == (300, 400)
    assert found.problem == "throughput fell short at 200, although 300 requests/s were sustained"


def test_a_few_requests_tell_less():
    few = [Load(10.0, 20, Estimate(1e7, 1e7, 1e7), Estimate(0.8, 0.78, 0.82), 2.0)]
    many = [Load(10.0, 2000, Estimate(1e7, 1e7, 1e7), Estimate(0.8, 0.78, 0.82), 200.0)]
    assert knee(few).high is None
    assert knee(many).high == 10


def test_where_most_requests_time_out_the_latency_is_not_known_and_not_needed():
    found = knee([*loads([1, 1, 0.3], [10, 10, 10])[:2], Load(300, 3000, None, Estimate(0.3, 0.2, 0.4), 10.0)])
    assert (found.low, found.high, found.by) == (200, 300, "throughput")


def test_single_runs_are_refused():
    found = knee([Load(rate, 1000, Estimate(1e7), Estimate(share), 10.0) for rate, share in ((100, 1.0), (200, 0.5))])
    assert (found.rate, found.low, found.high) == (None, None, None)
    assert "one run" in str(found.problem)


def test_without_throughput_and_duration_nothing_is_told():
    found = knee([Load(rate, 1000, Estimate(1e7, 9e6, 1.1e7)) for rate in (100, 200)])
    assert (found.rate, found.low, found.high) == (None, None, None)
    assert found.problem == "neither the throughput nor the duration of runs is known"


# --- measured ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def published(shared: Path) -> dict[str, list[Load]]:
    """Graph 8 of the predecessor's archive: runs of 10 s; mean and deviation (ddof 0) over 10 runs' mean latencies."""
    found: dict[str, list[Load]] = {}
    for row in csv.DictReader((shared / "prose/aggregates.csv").read_text("utf-8").splitlines()):
        if (row["graph"], row["commit"], row["kind"]) == ("bookinfo_shiver_8", "aa574d7", "latency"):
            rate, mean_ns, std_ns = float(row["rate"]), float(row["mean_s"]) * 1e9, float(row["std_s"]) * 1e9
            reach_ns = float(student.ppf(0.975, 9)) * std_ns / 3
            latency = Estimate(mean_ns, mean_ns - reach_ns, mean_ns + reach_ns)
            found.setdefault(row["variant"], []).append(Load(rate, rate * 10, latency, None, 10.0))
    return found


def test_published_means_alone_tell_the_knees(published):
    found = {variant: knee(loads) for variant, loads in published.items()}
    assert {variant: (each.low, each.high, each.by) for variant, each in found.items()} == {
        "plain": (400, 800, "latency"),  # at 600 some runs went well and some did not
        "istio": (400, 600, "latency"),
        "passthrough-filter": (200, 600, "latency"),
        "tooling-filter": (200, 600, "latency"),
        "prose-filter": (40, 80, "latency"),
    }
    # What an overloaded server answers does not depend on how much it is sent.
    assert 500 < (found["plain"].rate or 0) < 600
    assert 450 < (found["istio"].rate or 0) < 550
    assert 50 < (found["prose-filter"].rate or 0) < 60


def test_published_means_of_unknown_length_tell_no_knee(published):
    for loads in published.values():
        found = knee([replace(load, duration_s=None) for load in loads])
        assert (found.rate, found.low, found.high) == (None, None, None)
        assert "nor the duration of runs" in str(found.problem)


RATES = [50.0, 100.0, 200.0, 400.0]
KNEE = Knee(300, 200, 400, "throughput", ())


def values(of_rate) -> list[Estimate]:
    return [Estimate(of_rate(rate), of_rate(rate) * 0.9, of_rate(rate) * 1.1) for rate in RATES]


def test_between_rates_a_power_law_is_met_exactly():
    found = at_share(KNEE, 0.5, RATES, values(lambda rate: 3 * rate**1.5))
    assert found.load == 150
    assert found.value is not None and found.problem is None
    assert found.value.value == pytest.approx(3 * 150**1.5)
    # The knee is 200 to 400, so its half is 100 to 200.
    assert found.value.low == pytest.approx(0.9 * 3 * 100**1.5)
    assert found.value.high == pytest.approx(1.1 * 3 * 200**1.5)


def test_the_interval_spans_what_lies_between_the_ends_of_the_knee():
    dipping = [Estimate(value, value, value) for value in (8.0, 8.0, 2.0, 8.0)]
    found = at_share(Knee(300, 150, 400, "throughput", ()), 1, RATES, dipping)
    assert found.value is not None
    assert (found.value.low, found.value.high) == (pytest.approx(2), pytest.approx(8))


def test_nothing_is_extrapolated():
    found = at_share(KNEE, 0.2, RATES, values(float))
    assert found.value is None
    assert found.problem == "20% of the saturation point is 40 to 80 requests/s, but measured rates are 50 to 400"


@pytest.mark.parametrize("ends", [(None, 400), (200, None)])
def test_without_a_knee_there_is_no_share(ends):
    found = at_share(Knee(None, *ends, None, (), "not reached up to 400"), 0.5, RATES, values(float))
    assert (found.load, found.value) == (None, None)
    assert found.problem == "no saturation point: not reached up to 400"


def test_single_runs_have_no_latency_at_a_share():
    found = at_share(KNEE, 0.5, RATES, [Estimate(rate) for rate in RATES])
    assert (found.value, found.problem) == (None, "there is no interval with one run at a rate")


def test_a_ratio_holds_all_that_its_parts_allow():
    generator = np.random.default_rng(4)
    over, under = generator.uniform(2, 4, 1000), generator.uniform(5, 8, 1000)
    found = ratio_of(Estimate(3, 2, 4), Estimate(6, 5, 8))
    assert found.value == 0.5
    assert found.low == 0.25 and found.high == 0.8
    assert np.all((over / under >= found.low) & (over / under <= found.high))
