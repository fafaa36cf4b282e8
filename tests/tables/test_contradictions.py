"""Reports that contradict themselves, the requests beside them, or what was declared."""

import json

import numpy as np
import pyarrow as pa
import pytest
from loadstone.tables.contradictions import Tally
from support import foreign, rawfiles
from support.rawfiles import lines, write_cell
from tables.test_foreign import of, problems

RUN = rawfiles.compress(lines([2_000_000] * 100))
REPORT = {
    "latencies": dict.fromkeys(("mean", "50th", "90th", "95th", "99th", "min", "max"), 2000000),
    "requests": 100,
    "success": 1,
    "status_codes": {"200": 100},
    "duration": 990_000_000,
}


def text(requests: int, rate: str, attack: str) -> bytes:
    found = foreign.VEGETA.replace("100, 100.00", f"{requests}, {rate}").replace("1.005s, 1s", f"{attack}, {attack}")
    return found.replace("200:100", f"200:{requests}").encode()


def summary(**changes) -> bytes:
    latencies = REPORT["latencies"] | {name: value for name, value in changes.items() if name in REPORT["latencies"]}
    return json.dumps(REPORT | {"latencies": latencies} | {k: v for k, v in changes.items() if k in REPORT}).encode()


def verdicts(project) -> dict[int, str | None]:
    project.make()
    return {row["run"]: row["exclusion_reason"] for row in project.rows("SELECT run, exclusion_reason FROM runs")}


# --- what was declared -----------------------------------------------------------------------------------------------


def test_a_report_of_another_rate_than_declared_is_not_complete(project):
    files = {
        "1.vegeta.txt": text(150_000, "500.00", "4m59.998s"),
        "2.vegeta.txt": text(300_000, "1000.00", "4m59.999s"),
    }
    write_cell(project.archive, files, rate="1000", **of("vegeta", "open", testOptions={"rate": "1000"}))
    reasons = verdicts(project)
    assert reasons == {1: "150,000 requests instead of 299,999", 2: None}


@pytest.mark.parametrize(
    ("attack", "rate", "fine"),
    [("59.99s", "100.02", True), ("1m0s", "100.00", True), ("59.1s", "101.52", True), ("57s", "105.26", False)],
)
def test_a_report_of_another_duration_than_declared_is_unfit(project, attack, rate, fine):
    described = of("vegeta", "open", testOptions={"rate": "100", "duration": "60s"})
    write_cell(project.archive, {"1.vegeta.txt": text(6000, rate, attack)}, **described)
    expected = None if fine else "1.vegeta.txt says that the attack took 57 s; by the metadata, 60 s"
    assert verdicts(project) == {1: expected}


@pytest.mark.parametrize(("rate", "fine"), [("100.02", True), ("100.08", True), ("10.00", False), ("101.00", False)])
def test_a_printed_rate_that_its_own_report_contradicts(project, rate, fine):
    described = of("vegeta", "open", testOptions={"rate": "100", "duration": "60s"})
    write_cell(project.archive, {"1.vegeta.txt": text(6000, rate, "59.99s")}, **described)
    expected = None if fine else "1.vegeta.txt is damaged: its rate is not that of its requests and duration"
    assert verdicts(project) == {1: expected}


def test_one_request_a_second_lasts_one_interval_less(project):
    described = of("vegeta", "open", testOptions={"rate": "1", "duration": "3s"})
    write_cell(project.archive, {"1.vegeta.txt": text(3, "1.50", "2s")}, rate="1", **described)
    assert verdicts(project) == {1: None}


@pytest.mark.parametrize(
    ("rate", "duration", "why"),
    [
        ("1", "20s", None),
        ("1", "100s", "1.artillery.json holds 10 to 20 requests of the measured phase instead of 100"),
        ("1", "5s", "1.artillery.json holds 10 to 20 requests of the measured phase instead of 5"),
        (
            "2",
            "10s",
            "1.artillery.json says that 1 users arrived per second in 'Sustained'; by the metadata, the rate is 2",
        ),
    ],
)
def test_a_phase_whose_border_no_one_knows_is_held_against_what_it_may_hold(project, rate, duration, why):
    # Users still arrive in the fifth period, so the second phase began within the third.
    report = foreign.artillery([[9.0] * 10, [8.0] * 10, [2.0] * 10, [3.0] * 5, [3.0] * 5])
    described = of("artillery", "open", testOptions={"rate": rate, "duration": duration})
    write_cell(project.archive, {"1.artillery.json": report}, rate=rate, **described)
    assert verdicts(project) == {1: why}
    phases = project.rows("SELECT phase, count(*) n FROM requests GROUP BY phase ORDER BY phase")
    assert {row["phase"]: row["n"] for row in phases} == {"Warm up": 20, "Warm up / Sustained": 10, "test": 10}


def test_several_requests_per_user_are_a_rate_too(project):
    report = json.loads(foreign.artillery([[9.0] * 20, [8.0] * 20, [2.0] * 20, [3.0] * 20]))
    report["aggregate"]["scenariosCreated"] = 40
    described = of("artillery", "open", testOptions={"rate": "2", "duration": "20s"})
    write_cell(project.archive, {"1.artillery.json": json.dumps(report).encode()}, rate="2", **described)
    assert verdicts(project) == {1: None}


# --- the requests beside it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"mean": 2_001_000}, []),
        ({"99th": 2_900_000, "max": 2_001_500}, ["can't be right: its p99 is 2.9 ms, its maximum 2.0015 ms"]),
        ({"mean": 1_000_000, "min": 1_000_000}, ["mean is 1 ms; by the results it is 2 ms", "minimum is 1 ms; by"]),
        ({"max": 9_000_000}, ["maximum is 9 ms; by the results it is 2 ms"]),
        ({"99th": 8_000_000, "max": 8_000_000}, ["maximum is 8 ms", "p99 is 8 ms; by the results it is about 2"]),
        ({"success": 0.5}, ["says that 50.00% succeeded; by the results 100.00%"]),
        (
            {"status_codes": {"200": 90, "503": 10}},
            ["counts 10 responses of code 503; the results contain 0", "counts 90 responses of code 200"],
        ),
    ],
)
def test_a_report_that_contradicts_its_requests_is_told(project, changes, told):
    write_cell(project.archive, {"1.results.json.zst": RUN, "1.summary.json": summary(**changes)})
    assert verdicts(project) == {1: None}
    found = problems(project)
    assert len(found) == len(told) and all(part in text for part, text in zip(told, found, strict=True)), found
    assert sorted(project.row("SELECT problems FROM runs")["problems"]) == sorted(found)
    assert project.row("SELECT n_requests FROM cells") == {"n_requests": 100}
    (report,) = project.rows("SELECT preferred, problems FROM summaries")
    assert report["preferred"] and {f"1.summary.json {text}" for text in report["problems"]} == set(found)


def test_percentiles_are_held_against_the_requests_loosely(project):
    latencies = [1_000_000 * (1 + number) for number in range(100)]
    figures = {"mean": 50_500_000, "min": 1_000_000, "50th": 51_000_000, "90th": 90_500_000, "95th": 95_900_000}
    report = summary(**figures, **{"99th": 100_000_000, "max": 100_000_000})
    wrong = summary(**(figures | {"50th": 70_000_000}), **{"99th": 100_000_000, "max": 100_000_000})
    run = rawfiles.compress(lines(latencies))
    files = {"1.results.json.zst": run, "1.summary.json": report, "2.results.json.zst": run, "2.summary.json": wrong}
    write_cell(project.archive, files)
    project.make()
    (told,) = [text for text in problems(project) if "says" in text]
    assert told.startswith("2.summary.json says that the p50 is 70 ms; by the results it is about 51 ms")


def test_every_report_beside_the_requests_is_held_against_them(project):
    right = foreign.k6_summary(3)
    text = b"  http_req_duration...: avg=2ms min=1ms med=2ms max=3ms p(90)=2.8ms p(95)=2.9ms\n  http_reqs...: 3 1/s\n"
    files = {"1.k6.json": foreign.k6_json([1.0, 2.0, 3.0]), "1.k6.txt": text.replace(b"max=3ms", b"max=3.3ms")}
    files["1.k6.summary.json"] = right.replace(b'"avg": 2.0', b'"avg": 2.5')
    write_cell(project.archive, files, rate="2", **of("k6", "closed", users=2))
    project.make()
    assert {text for text in problems(project) if "says" in text} == {
        "1.k6.summary.json says that the mean is 2.5 ms; by the results it is 2 ms",
        "1.k6.txt says that the maximum is 3.3 ms; by the results it is 3 ms",
    }


HDR_P50 = "1.hdr.csv says that the p50 is 70 ms; by the results it is about 51 ms"
HDR = """\
       Value     Percentile TotalCount 1/(1-Percentile)
       1.000     0.000000000000          1           1.00
      50.000     0.500000000000         50           2.00
      99.000     0.990000000000         99         100.00
     100.095     1.000000000000        100
#[Mean    =       50.500, StdDeviation   =       28.866]
#[Max     =      100.095, Total count    =          100]
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", []),
        ("50.500", "50.600", []),
        ("50.500", "60.500", ["1.hdr.csv says that the mean is 60.5 ms; by the results it is 50.5 ms"]),
        ("100.095", "140.095", ["1.hdr.csv says that the maximum is 140.095 ms; by the results it is 100 ms"]),
        (
            "50.000     0.5",
            "70.000     0.5",
            [HDR_P50],
        ),
        ("50.500", "50,500", []),
    ],
)
def test_a_percentile_table_is_held_against_the_requests_beside_it(project, old, new, told):
    run = rawfiles.compress(lines([1_000_000 * (1 + number) for number in range(100)]))
    write_cell(project.archive, {"1.results.json.zst": run, "1.hdr.csv": HDR.replace(old, new).encode()})
    project.make()
    assert [text for text in problems(project) if "says" in text] == told


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("min,mean,p95,max,count\n1ms,50.5ms,95ms,100ms,100\n", []),
        ("min,mean,p95,max\n1ms,51ms,0.1s,0.1s\n", []),  # to the digits that it prints
        ("min,mean,p95,max\n1ms,60ms,95ms,100ms\n", ["the mean is 60 ms; by the results it is 50.5 ms"]),
        ("min,mean,p95,max\n1ms,50.5ms,70ms,100ms\n", ["the p95 is 70 ms; by the results it is about 96 ms"]),
        ("min,mean,p95,max,count\n1ms,60ms,95ms,100ms,90\n", []),  # of other requests; that is told by itself
    ],
)
def test_a_row_of_a_printed_table_is_held_against_the_requests_beside_it(project, table, told):
    run = rawfiles.compress(lines([1_000_000 * (1 + number) for number in range(100)]))
    write_cell(project.archive, {"1.results.json.zst": run, "1.summary.csv": table.encode()})
    project.make()
    assert [text for text in problems(project) if "says" in text] == [f"1.summary.csv says that {one}" for one in told]


@pytest.mark.parametrize("share", [0.008, 0.009, 0.01, 0.011, 0.012, 0.015, 0.11])
def test_an_estimate_within_a_gap(share):
    """Of vegeta itself, where about as many requests took a second as lie beyond a percentile."""
    random = np.random.default_rng(round(share * 1000))
    for requests in (2000, 6000):
        latencies = (4e7 * random.lognormal(0, 0.1, requests)).astype(np.int64)
        latencies[random.choice(requests, random.binomial(requests, share), replace=False)] = 10**9
        said = json.loads(rawfiles.vegeta("report", "-type=json", stdin=lines(latencies.tolist(), 100.0)))["latencies"]
        tally = Tally()
        tally.add(pa.RecordBatch.from_pydict({"latency_ns": latencies, "code": [200] * requests}))
        for name, percentile in (("50th", 0.5), ("90th", 0.9), ("95th", 0.95), ("99th", 0.99)):
            near, low, high = tally.around(percentile)
            assert low * 0.95 <= said[name] <= high * 1.05 and low <= near <= high


# --- itself ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "instead", "why"),
    [
        ("4.953ms", "8.953ms", "its p50 is 8.953 ms, its p90 7.572 ms"),
        ("5.529ms", "81.9ms", "its mean is 81.9 ms, its maximum 79.87 ms"),
        ("2.089ms", "5.6ms", "its minimum is 5.6 ms, its p50 4.953 ms"),
        ("18.509ms", "81ms", None),
    ],
)
def test_impossible_figures_leave_out_a_run_of_nothing_else(project, said, instead, why):
    write_cell(
        project.archive, {"1.vegeta.txt": foreign.VEGETA.replace(said, instead).encode()}, **of("vegeta", "open")
    )
    reason = verdicts(project)[1]
    assert reason is None if why is None else why in reason


# --- what can't be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"nothing\n"])
def test_a_report_that_cannot_be_read_is_no_single_requests(project, content):
    write_cell(project.archive, {"1.vegeta.txt": content}, **of("vegeta", "open"))
    project.make()
    assert project.row("SELECT evidence, excluded FROM runs") == {"evidence": "summary", "excluded": True}


def test_an_imported_report_is_a_run_of_its_own_in_either_form(project):
    described = of("vegeta", "open", imported={"at": "2026-11-21"})
    write_cell(project.archive, {"1.summary.json": summary(), "2.vegeta.txt": foreign.VEGETA.encode()}, **described)
    assert verdicts(project) == {1: None, 2: None}
    assert problems(project) == []
