"""Table sending: how late requests were sent, latency from when they were due, and where neither can be told."""

from collections.abc import Sequence

import numpy as np
import pytest
from support import foreign, rawfiles
from support.rawfiles import START_NS, compress, line, write_cell
from tables.tabling import Project

RNG = np.random.default_rng(12)
MS = 1_000_000
RATE, N = 1000, 4000
DUE_NS = np.arange(N) * MS


def run(sent_ns: Sequence[int], latencies_ns: Sequence[int]) -> bytes:
    pairs = enumerate(zip(sent_ns, latencies_ns, strict=True))
    return compress(b"".join(line(seq, int(ns), sent_ns=START_NS + int(at)) for seq, (at, ns) in pairs))


def stalled(start_ns: int, length_ns: int) -> np.ndarray:
    """When a generator sends that does nothing for a while, and then all that was due at once."""
    end_ns = start_ns + length_ns
    return np.where((start_ns <= DUE_NS) & (end_ns > DUE_NS), end_ns, DUE_NS)


def write(project: Project, files: dict[str, bytes], rate: int = RATE, seconds: float = 4, **fields) -> None:
    options = {"rate": str(rate), "duration": f"{seconds}s"}
    write_cell(project.archive, files, rate=str(rate), **{"testOptions": options} | fields)


def test_a_stall_of_half_a_second_is_found_within_a_millisecond(project) -> None:
    latencies_ns = np.round(2e6 * np.exp(0.3 * RNG.normal(size=N))).astype(np.int64)
    sent_ns = stalled(1_234_000_000, 500 * MS) + RNG.integers(0, 50_000, N)
    write(project, {"1.results.json.zst": run(sent_ns, latencies_ns)})
    project.make()
    row = project.row("SELECT * FROM sending")
    assert row["lag_max_ns"] == pytest.approx(500 * MS, abs=MS)
    assert row["lag_max_due_s"] == pytest.approx(1.234, abs=0.001)
    assert row["lag_max_seq"] == 1234
    assert (row["limited"], row["refused"], row["requests"]) == (True, None, N)
    # Independently: from when each was due, with the first punctual request as zero.
    lag_ns = sent_ns - DUE_NS - (sent_ns - DUE_NS).min()
    assert row["corrected_mean_ns"] == pytest.approx((latencies_ns + lag_ns).mean())
    assert row["observed_mean_ns"] == pytest.approx(latencies_ns.mean())
    for name, q in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}.items():
        assert row[f"observed_{name}_ns"] == pytest.approx(np.quantile(latencies_ns, q), rel=1e-9)
        assert row[f"corrected_{name}_ns"] == pytest.approx(np.quantile(latencies_ns + lag_ns, q), rel=1e-9)
    assert row["corrected_p99_ns"] > 400 * MS > 10 * MS > row["observed_p99_ns"]
    assert row["lag_p50_ns"] == pytest.approx(np.quantile(lag_ns, 0.5))
    assert row["lag_p99_ns"] == pytest.approx(np.quantile(lag_ns, 0.99))
    assert project.row("SELECT send_lag_p99_ns FROM runs")["send_lag_p99_ns"] == row["lag_p99_ns"]


def test_a_stall_at_the_start_and_one_at_the_end(project) -> None:
    """A late first request is no zero to count from."""
    latencies_ns = np.full(N, 2 * MS)
    files = {
        f"{number}.results.json.zst": run(stalled(start_ns, 500 * MS), latencies_ns + number)
        for number, start_ns in ((1, 0), (2, 3_600_000_000))
    }
    write(project, files)
    project.make()
    first, last = project.rows("SELECT lag_max_ns, lag_max_due_s, achieved_rate FROM sending ORDER BY run")
    assert first == {"lag_max_ns": 500 * MS, "lag_max_due_s": 0.0, "achieved_rate": pytest.approx(RATE, rel=0.001)}
    assert last == {"lag_max_ns": 500 * MS, "lag_max_due_s": 3.6, "achieved_rate": pytest.approx(N / 4.1, rel=0.001)}


def test_a_punctual_run_is_not_limited_and_its_latency_not_corrected(project) -> None:
    latencies_ns = np.round(2e6 * np.exp(0.3 * RNG.normal(size=N))).astype(np.int64)
    write(project, {"1.results.json.zst": run(DUE_NS, latencies_ns)})
    project.make()
    row = project.row("SELECT * FROM sending")
    assert (row["limited"], row["lag_p99_ns"], row["lag_max_ns"]) == (False, 0, 0)
    assert (row["asked_rate"], row["achieved_rate"]) == (RATE, pytest.approx(RATE))
    assert row["corrected_p99_ns"] == row["observed_p99_ns"]
    assert row["lag_limit_ns"] == 2 * MS, "a tenth of its median latency is less"
    assert project.rows("SELECT * FROM suggestions") == []


@pytest.mark.parametrize("requests", [50, 500, N])
def test_the_steps_of_vegetas_own_clock_are_no_falling_behind(project, requests) -> None:
    """On an idle machine its lags are spread evenly between 0 and 1.1 ms; that of a busy one is beyond them."""
    sent_ns = DUE_NS[:requests] + RNG.integers(0, round(1.1 * MS), requests)
    seconds = requests / RATE
    files = {"1.results.json.zst": run(sent_ns, [MS // 2] * requests)}
    late_ns = sent_ns + np.where(np.arange(requests) % 5 < 3, 3 * MS, 0)
    write(project, files | {"2.results.json.zst": run(late_ns, [MS // 2] * requests)}, seconds=seconds)
    project.make()
    assert [row["limited"] for row in project.rows("SELECT limited FROM sending ORDER BY run")] == [False, True]


def test_a_generator_that_falls_behind_for_good(project) -> None:
    """It sends 800 per second: the last request is a second late."""
    sent_ns = np.round(DUE_NS * 1.25).astype(np.int64)
    write(project, {"1.results.json.zst": run(sent_ns, [2 * MS] * N)})
    project.make()
    row = project.row("SELECT * FROM sending")
    assert row["achieved_rate"] == pytest.approx(800)
    assert row["lag_max_ns"] == pytest.approx((N - 1) * 0.25 * MS)
    (found,) = project.rows("SELECT tag, run, evidence FROM suggestions")
    assert (found["tag"], found["run"]) == ("GENERATOR_LIMITED", 1)
    assert "800 of 1,000 requests/s" in found["evidence"] and "the limit 2 ms" in found["evidence"]


@pytest.mark.parametrize(
    ("requests", "late", "limited"),
    [
        (15, 15, None),  # nothing is said
        (20, 9, False),  # below: the median counts
        (20, 15, True),
        (99, 40, False),
        (100, 5, False),  # the 90th percentile
        (100, 15, True),
        (999, 50, False),
        (1000, 50, True),  # the 99th
        (1000, 5, False),
    ],
)
def test_few_late_requests_of_few_are_chance(project, requests, late, limited) -> None:
    sent_ns = DUE_NS[:requests].copy()
    sent_ns[requests - late :] += 50 * MS
    sent_ns[0] = 0
    seconds = requests / RATE
    write(project, {"1.results.json.zst": run(sent_ns, [2 * MS] * requests)}, seconds=seconds)
    project.make()
    assert project.row("SELECT limited FROM sending") == {"limited": limited}
    tags = [row["tag"] for row in project.rows("SELECT tag FROM suggestions")]
    assert ("GENERATOR_LIMITED" in tags) == bool(limited)


def test_the_limit_is_configured(project) -> None:
    """Lags of 0 to 40 ms, latencies of 100 ms."""
    sent_ns = DUE_NS + RNG.integers(0, 40 * MS, N)
    sent_ns[0] = 0
    write(project, {"1.results.json.zst": run(sent_ns, [100 * MS] * N)})
    project.convert()
    for limit, limited, limit_ns in (
        ({}, True, 10 * MS),
        ({"share": 0.5}, False, 50 * MS),
        ({"share": 0.0, "time_ns": 20e6}, True, 20 * MS),
        ({"time_ns": 60e6}, False, 60 * MS),
    ):
        project.analyse(lag_limit=limit)
        row = project.row("SELECT limited, lag_limit_ns FROM sending")
        assert row == {"limited": limited, "lag_limit_ns": pytest.approx(limit_ns)}


def test_it_is_refused_where_it_means_nothing(project) -> None:
    punctual = run(DUE_NS[:100], [2 * MS] * 100)
    write(project, {"1.results.json.zst": punctual}, rate=100, seconds=1, variant="serial", testMode="serial")
    other = {"order": None, "testOptions": {}}
    hey = {"testMode": "hey", "generator": {"name": "hey"}, "loadModel": "closed", "users": 3} | other
    write_cell(project.archive, {"1.hey.csv": foreign.HEY.encode()}, rate="3", variant="closed", **hey)
    k6 = {"testMode": "k6", "generator": {"name": "k6"}, "loadModel": "open"}
    write_cell(project.archive, {"1.k6.json": foreign.k6_json([1.0, 2.0])}, rate="2", variant="k6", **k6 | other)
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5])
    artillery = {"testMode": "artillery", "generator": {"name": "artillery"}, "loadModel": "open"} | other
    write_cell(project.archive, {"1.artillery.json": report}, rate="2", variant="artillery", **artillery)
    write_cell(project.archive, {"1.summary.json": b'{"requests": 100, "latencies": {"mean": 5}}'}, variant="reported")
    write(project, {"1.results.json.zst": run(DUE_NS[:100], [2 * MS] * 100)}, rate=100, seconds=1, variant="fast")
    write(project, {"1.results.json.zst": run(DUE_NS[:1], [2 * MS])}, rate=1, seconds=1, variant="one")
    project.make()
    rows = {row["variant"]: row for row in project.rows("SELECT * FROM sending")}
    words = {
        "serial": "serial load",
        "closed": "closed load",
        "k6": "does not record when each request was scheduled",
        "artillery": "in which period",
        "reported": "single requests were not recorded",
        "one": "a single measured request has no rate",
        "fast": "sent at 1,000 per second or more, but the rate is 100",
    }
    assert set(rows) == set(words)
    for variant, expected in words.items():
        row = rows[variant]
        assert expected in row["refused"]
        assert {row[name] for name in ("lag_p99_ns", "limited", "corrected_p99_ns", "asked_rate")} == {None}
    assert project.rows("SELECT * FROM suggestions WHERE tag = 'GENERATOR_LIMITED'") == []


def test_a_clock_that_is_set_back_is_named_and_nothing_rests_on_it(project) -> None:
    """By an hour in the middle of a run that is punctual, and warms up: its latencies stay."""
    latencies_ns = np.round(5e6 * (1 + 9 * np.exp(-np.arange(N) / 200)) * np.exp(0.1 * RNG.normal(size=N)))
    sent_ns = DUE_NS - np.where(np.arange(N) < N // 2, 0, 3600 * 10**9)
    files = {f"{number}.results.json.zst": run(sent_ns, latencies_ns) for number in (1, 2)}
    write(project, files, variant="back")
    write(project, {f"{number}.results.json.zst": run(DUE_NS, latencies_ns) for number in (1, 2)}, variant="right")
    project.make()
    told = project.rows("SELECT variant, refused, lag_p99_ns FROM sending ORDER BY variant, run")
    why = "the clock was set back by 3,600 s during the run"
    assert [(why in (row["refused"] or ""), row["lag_p99_ns"] is None) for row in told] == [(True, True)] * 2 + [
        (False, False)
    ] * 2
    problems = project.rows("SELECT variant, run, problem FROM problems WHERE problem LIKE '%clock%'")
    assert [(row["variant"], row["run"]) for row in problems] == [("back", 1), ("back", 2)]
    assert problems[0]["problem"].startswith(why) and "its latencies are shown" in problems[0]["problem"]
    back, right = project.rows("SELECT * FROM cells WHERE stream = 'main' ORDER BY variant")
    assert back["throughput"] is None and right["throughput"] == pytest.approx(RATE, rel=0.01)
    assert back["p99_ns"] == right["p99_ns"] and back["mean_ns"] == right["mean_ns"]
    shapes = project.rows(
        "SELECT variant, shape, warmup_requests, warmup_s FROM run_shapes WHERE run = 1 ORDER BY variant"
    )
    assert [row["shape"] for row in shapes] == ["still warming up"] * 2, "in the order of their numbers"
    assert shapes[0]["warmup_s"] is None and shapes[1]["warmup_s"] is not None
    assert {row["variant"] for row in project.rows("SELECT DISTINCT variant FROM time_bins")} == {"right"}
    started = project.rows("SELECT DISTINCT epoch_ns(started_at) // 1000000000 AS at FROM runs")
    assert [row["at"] for row in started] == [START_NS // 10**9]
    assert project.rows("SELECT * FROM suggestions WHERE tag = 'GENERATOR_LIMITED'") == []
    claim = project.row("SELECT text, remedy FROM claims WHERE claim = 'lag_unknown'")
    assert "2 of 4 runs" in claim["text"] and why in claim["text"] and "clock" in claim["remedy"]


@pytest.mark.parametrize(("seconds", "step_ms", "known"), [(10, 1000, False), (10, 1, True), (100, 1000, True)])
def test_a_clock_that_is_coarse_for_so_short_a_run_tells_no_throughput(project, seconds, step_ms, known) -> None:
    """k6's CSV has whole seconds unless it was asked for more; one user who gets an answer every 100 ms."""
    ended_ms = [1_795_262_400_000 + 100 * number for number in range(1, 10 * seconds + 1)]
    lines = [f"http_req_duration,{ms // step_ms},100,200" for ms in ended_ms]
    content = "\n".join(["metric_name,timestamp,metric_value,status", *lines, ""]).encode()
    options = {"testMode": "k6", "generator": {"name": "k6"}, "loadModel": "closed", "testOptions": {}, "order": None}
    write_cell(project.archive, {"1.k6.csv": content}, rate="1", **options)
    project.make()
    assert project.row("SELECT clock_resolution_ns FROM runs") == {"clock_resolution_ns": step_ms * 1e6}
    row = project.row("SELECT n_requests, throughput FROM cells")
    assert row["n_requests"] == 10 * seconds
    assert row["throughput"] == (pytest.approx(10, rel=0.02) if known else None)


def test_requests_that_end_in_another_order_are_no_clock_that_went_back(project) -> None:
    """Numbers that count requests as they ended: one that took long is sent before those around it."""
    latencies_ns = np.where(np.arange(N) % 100 == 7, 30_000 * MS, 2 * MS)
    ended_ns = DUE_NS + latencies_ns
    order = np.argsort(ended_ns, kind="stable")
    write(project, {"1.results.json.zst": run(DUE_NS[order], latencies_ns[order])})
    project.make()
    assert project.rows("SELECT clock_set_back_s FROM runs") == [{"clock_set_back_s": None}]


def test_hostile_times_and_numbers_stop_nothing(project) -> None:
    """The earliest and the latest instant and number that a table can hold, and a rate of next to nothing."""
    ends, now = ("1677-09-22T00:00:00Z", "2262-04-11T00:00:00Z"), ("2024-01-01T00:00:00Z",) * 2
    cases = [("100", ends, (0, 1)), ("100.5", now, (0, 2**63 - 1)), ("0.0000001", now, (0, 2**63 - 1))]
    cases.append(("0.000000000000000000000000000001", ends, (0, 2**62)))
    for rate, stamps, numbers in cases:
        pairs = zip(stamps, numbers, strict=True)
        content = b"".join(line(number, sent_ns=START_NS, timestamp=stamp) for stamp, number in pairs)
        write_cell(project.archive, {"1.results.json": content}, rate=rate)
    project.make()
    assert len(project.rows("SELECT * FROM sending")) == len(cases)


def test_the_lag_of_a_real_attack(project) -> None:
    """Vegeta's own stamps: achieved as asked, lags that are none before its start, and from due never shorter."""
    with rawfiles.server() as port:
        target = f"GET http://127.0.0.1:{port}/200\n".encode()
        binary = rawfiles.vegeta("attack", "-rate=200", "-duration=2s", stdin=target)
    write(project, {"1.results.bin": binary}, rate=200, seconds=2)
    project.make()
    row = project.row("SELECT * FROM sending")
    assert row["refused"] is None
    assert row["achieved_rate"] <= 200 * 1.01
    assert 0 <= row["lag_p50_ns"] <= row["lag_p99_ns"] <= row["lag_max_ns"]
    for name in ("mean", "p50", "p90", "p99", "p999"):
        assert row[f"corrected_{name}_ns"] >= row[f"observed_{name}_ns"]


def test_a_time_that_the_database_takes_for_infinity_is_none(project) -> None:
    times_ns = START_NS + DUE_NS
    times_ns[9] = 2**63 - 1
    lines = (f"{at},200,{2 * MS},0,0,,,,{seq},GET,http://localhost/,\n" for seq, at in enumerate(times_ns.tolist()))
    write(project, {"1.results.csv.zst": compress("".join(lines).encode())})
    project.make()
    assert project.row("SELECT requests, clock_set_back_s FROM runs") == {"requests": N, "clock_set_back_s": None}
    assert project.row("SELECT lag_p99_ns, lag_max_ns FROM sending") == {"lag_p99_ns": 0, "lag_max_ns": 0}
