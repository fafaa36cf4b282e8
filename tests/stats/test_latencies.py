"""Percentiles of pooled requests against numpy and DuckDB, lower bounds, send lags, and clocks that were set back."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from loadstone.stats import Latencies, is_lower_bound
from loadstone.stats.latencies import Moments, clock_set_back_ns, deviation, send_lags, sum_of

SHARES = [0, 0.001, 0.25, 1 / 3, 0.5, 0.9, 0.95, 0.99, 0.999, 1]
LARGEST = np.iinfo(np.int64).max


def pooled(*runs: list[int] | np.ndarray) -> Latencies:
    return Latencies.pooled((np.asarray(run, np.int64), np.zeros(len(run), bool)) for run in runs)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 999, 1000])
@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_numpy_and_to_the_last_digit_those_of_duckdb(size, seed) -> None:
    values = np.random.default_rng(seed).lognormal(14, 2, size).astype(np.int64)
    found = pooled(values[: size // 2], values[size // 2 :])
    assert found.quantiles(SHARES) == pytest.approx(np.quantile(values, SHARES))
    with duckdb.connect() as connection:
        connection.register("requests", pa.table({"ns": values}))
        query = "SELECT quantile_cont(ns, $shares) AS quantiles, avg(ns) AS mean FROM requests"
        assert connection.execute(query, {"shares": SHARES}).fetchone() == (found.quantiles(SHARES), found.mean())


def test_without_requests_there_are_none() -> None:
    assert pooled([]).quantiles(SHARES) == []


@pytest.mark.parametrize("values", [[LARGEST, LARGEST, LARGEST - 2], [-LARGEST, -LARGEST, 5], [1, 2, 4]])
def test_the_mean_is_that_of_the_exact_sum(values) -> None:
    assert pooled(values).mean() == sum(values) / 3


@pytest.mark.parametrize("seed", range(50))
def test_a_percentile_is_a_lower_bound_where_a_timeout_could_have_changed_it(seed) -> None:
    """Whatever the requests that timed out took beyond their limit, percentiles that are known stay."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 1000, random.integers(5, 60))
    timed_out = random.random(values.size) < 0.2
    found = Latencies.pooled([(values[:3], timed_out[:3]), (values[3:], timed_out[3:])])
    longer = pooled(values + timed_out * 10**6)
    bounds = found.censoring({str(share): share for share in SHARES})
    changed = np.not_equal(found.quantiles(SHARES), longer.quantiles(SHARES))
    least = values[timed_out].min() if timed_out.any() else LARGEST
    assert (found.n_timeouts, found.known) == (timed_out.sum(), (values < least).sum())
    for share, differs in zip(SHARES, changed, strict=True):
        is_bound = bounds[str(share)]
        assert is_bound or not differs
        assert is_bound == is_lower_bound(values.size, found.known, share)
        # A place between two requests is also in doubt where the timeout is the upper one.
        assert not is_bound or np.quantile(values, share, method="higher") >= least
    assert bounds["mean"] == timed_out.any()


def test_send_lags_count_from_the_earliest_start_that_any_request_implies() -> None:
    seq, interval_ns = np.array([0, 1, 2, 5]), 1000
    zero_ns, lags_ns = send_lags(seq, np.array([10_700, 11_000, 12_100, 15_000]), interval_ns)
    assert (zero_ns, lags_ns.tolist()) == (10_000, [700, 0, 100, 0])


def test_times_that_64_bits_cannot_add_up_are_exact() -> None:
    far, near = 2**63 - 1, -(2**63)
    zero_ns, lags_ns = send_lags(np.array([0, 2**40]), np.array([near, far]), 10**9)
    starts = [near, far - 2**40 * 10**9]
    assert (zero_ns, lags_ns.tolist()) == (min(starts), [start - min(starts) for start in starts])
    assert sum_of(np.array([far]), np.array([far])).tolist() == [2 * far]
    assert clock_set_back_ns(np.array([far, near]), np.array([0, 0])) == far - near
    half, ends = 2**62 + 2**61, [10 * 10**9, 10**9]
    assert clock_set_back_ns(np.array([half, -half]), np.array([ends[0] - half, ends[1] + half])) == 9 * 10**9
    assert sum_of(np.array([2**62]), np.array([2**62])).tolist() == [2**63]


@pytest.mark.parametrize(("sent_ns", "back_ns"), [([0, 5, 10], 0), ([0, 10, 4], 6), ([7], 0), ([], 0)])
def test_a_clock_is_set_back_by_its_largest_step(sent_ns: list[int], back_ns: int) -> None:
    assert clock_set_back_ns(np.array(sent_ns, np.int64), np.full(len(sent_ns), 3)) == back_ns


def test_a_request_that_began_earlier_and_ended_later_sets_no_clock_back() -> None:
    """Numbers may be in the order of completion: a slow request began before the one that was completed before it."""
    assert clock_set_back_ns(np.array([100, 0]), np.array([10, 200])) == 0


@pytest.mark.parametrize("largest", [10**6, 2**33, 2**62, LARGEST])
def test_sums_and_squares_are_exact(largest: int) -> None:
    values = np.random.default_rng(3).integers(-largest, largest, 1000)
    found = Moments.of(pooled(values))
    assert found == Moments(1000, sum(values.tolist()), sum(value * value for value in values.tolist()))


def test_the_deviation_is_that_of_numpy_however_latencies_are_divided() -> None:
    values = np.random.default_rng(3).integers(1, 10**10, 3 * 10**6)
    whole, part = Moments.of(pooled(values)), Moments.of(pooled(values[:1000]))
    expected = pytest.approx(np.std(values.astype(np.longdouble)), rel=1e-14)
    assert deviation([whole]) == expected and deviation([whole.without(part), part]) == expected
    assert deviation([Moments.of(pooled(np.full(1000, 2**54 + 1))), Moments(0, 0, 0)]) == 0
