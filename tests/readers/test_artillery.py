"""Artillery's reports: raw latencies and phases of 1.x, summaries of 2.x."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from loadstone.readers import artillery
from loadstone.readers.base import Problems, Report
from readers.damage import HOSTILE, cuts
from support import arrow, rawfiles, samples

# The published table, in ms: min, max, median, p95, p99.
PUBLISHED = {"scenario1": (1, 90, 2, 3, 3), "scenario3": (1, 16, 2, 2, 3)}
STATISTICS = ("min_ns", "max_ns", "p50_ns", "p95_ns", "p99_ns")


def read(path: Path) -> tuple[pa.Table, Problems]:
    problems = Problems()
    batches = list(artillery.read(path, problems))
    assert all(batch.schema == artillery.ARTILLERY_SCHEMA for batch in batches)
    return pa.Table.from_batches(batches, artillery.ARTILLERY_SCHEMA), problems


def report(path: Path) -> Report:
    problems = Problems()
    found = artillery.report(path, problems)
    assert problems.texts() == []
    return found


def stats_lite(values: np.ndarray, share: float) -> float:
    """The percentile of Artillery 1.x: linear between order statistics at n * p - 0.5."""
    return float(np.percentile(values, share * 100, method="hazen"))


def written(tmp_path: Path, content: object, name: str = "1.artillery.json") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def figures_of(found: Report, section: str) -> dict:
    return {(figure.metric, figure.statistic): figure for figure in found.figures if figure.section == section}


def periods(*latencies: list, phases: list | None = None, codes: dict | None = None, interval_s: int = 10) -> dict:
    """A report of 1.x with one period for each list of latencies."""
    return {
        "aggregate": {"latency": {}, "requestsCompleted": sum(map(len, latencies)), "phases": phases or []},
        "intermediate": [
            {
                "timestamp": f"2021-08-08T16:{k * interval_s // 60:02}:{k * interval_s % 60:02}.000Z",
                "scenariosCreated": len(values),
                "requestsCompleted": len(values),
                "codes": codes or {"200": len(values)},
                "latencies": values,
            }
            for k, values in enumerate(latencies, start=1)
        ],
    }


# --- the real reports of the 3scale benchmark ------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_the_published_row_from_raw_latencies_and_from_the_aggregate(shared, scenario):
    path = shared / f"artillery/{scenario}.json"
    table, problems = read(path)
    latency_ns = table["latency_ns"].to_numpy()
    computed = (
        latency_ns.min(),
        latency_ns.max(),
        np.median(latency_ns),
        *(stats_lite(latency_ns, p) for p in (0.95, 0.99)),
    )
    assert tuple(value / 1e6 for value in computed) == PUBLISHED[scenario]
    said = report(path)
    assert tuple(said.summary[name] / 1e6 for name in STATISTICS) == PUBLISHED[scenario]
    assert said.summary["requests"] == len(table) == {"scenario1": 33613, "scenario3": 33655}[scenario]
    assert problems.texts() == []


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_every_period_tells_the_statistics_of_its_own_latencies(shared, scenario):
    path = shared / f"artillery/{scenario}.json"
    original = json.loads(path.read_bytes())
    said = report(path)
    table, _ = read(path)
    first = 0
    for period in original["intermediate"]:
        figures = figures_of(said, period["timestamp"])
        values = table["latency_ns"].to_numpy()[first : first + len(period["latencies"])]
        first += len(values)
        assert values.tolist() == period["latencies"]
        for statistic, value in period["latency"].items():
            assert figures["latency", statistic].value == pytest.approx(value * 1e6)
            assert figures["latency", statistic].text == f"{value}"
        # Artillery rounds to 0.1 ms, halves upwards.
        assert math.floor(stats_lite(values, 0.95) / 1e5 + 0.5) / 10 == period["latency"]["p95"]
        assert figures["codes", "200"].value == period["codes"]["200"]
        assert figures["rps", "mean"].unit == "requests/s"
    assert table["seq"].to_pylist() == list(range(len(table)))
    assert table["sent_at"].null_count == len(table)


def test_the_sustained_phase_stands_apart_from_what_came_before(shared):
    path = shared / "artillery/scenario1.json"
    table, _ = read(path)
    counted = Counter(table["phase"].to_pylist())
    assert list(dict.fromkeys(table["phase"].to_pylist())) == [
        "Warm up",
        "Warm up / Ramp up load",
        "Ramp up load",
        "Ramp up load / Sustained load",
        "Sustained load",
    ]
    # 60 periods of 500 but for the first, in which the ramp ended half a second late, and 27 in the last second.
    assert counted["Sustained load"] == 59 * 500 + 27
    said = report(path)
    assert [(phase.name, phase.duration_s, phase.rate, phase.to_rate) for phase in said.phases] == [
        ("Warm up", 60, 5, None),
        ("Ramp up load", 120, 5, 50),
        ("Sustained load", 600, 50, None),
    ]
    assert said.facts == {
        "load_model": "open",
        "duration_s": "780",
        "started_at": "2021-08-08T16:24:34.732000+00:00",
        "across_phases": "2",
    }


# --- our own ---------------------------------------------------------------------------------------------------------


def test_a_run_of_1_7_with_several_codes_and_errors(tmp_path):
    path = written(tmp_path, samples.content("one.artillery.json"))
    table, problems = read(path)
    assert problems.texts() == []
    assert len(table) == 448
    assert table["code"].null_count == 448, "which of them was 404 is not told"
    said = report(path)
    assert said.summary["status_codes"] == {"200": 224, "404": 224}
    assert said.summary["requests"] == 448 + 29
    assert said.summary["success"] == 224 / 477
    assert figures_of(said, "")["errors", "ECONNRESET"].value == 29
    assert figures_of(said, "")["scenarioCounts", "mixed"].value == 224
    assert {"Warm up", "Ramp up load", "Sustained load"} <= set(table["phase"].to_pylist())


def test_a_run_of_2_with_every_figure(tmp_path):
    original = json.loads(samples.content("two.artillery.json"))
    path = written(tmp_path, samples.content("two.artillery.json"))
    table, problems = read(path)
    assert (len(table), problems.texts()) == (0, [])
    said = report(path)
    times = original["aggregate"]["summaries"]["http.response_time"]
    names = {"p50_ns": "median", "p75_ns": "p75", "p90_ns": "p90", "p95_ns": "p95", "p99_ns": "p99", "p999_ns": "p999"}
    for column, name in (names | {"min_ns": "min", "mean_ns": "mean", "max_ns": "max"}).items():
        assert said.summary[column] == pytest.approx(times[name] * 1e6)
    assert said.summary["status_codes"] == {"200": 224, "404": 224}
    assert said.summary["requests"] == original["aggregate"]["counters"]["http.requests"]
    sections = ["", *(figure.section for figure in said.figures if figure.section)]
    for section, part in zip(dict.fromkeys(sections), [original["aggregate"], *original["intermediate"]], strict=True):
        figures = figures_of(said, section)
        expected = {(name, "count"): value for name, value in part["counters"].items()}
        expected |= {(name, "rate"): value for name, value in part["rates"].items()}
        expected |= {(name, key): value for name, stats in part["summaries"].items() for key, value in stats.items()}
        assert {key: figure.text for key, figure in figures.items()} == {k: str(v) for k, v in expected.items()}
        ns = {key for key, figure in figures.items() if figure.unit == "ns"}
        assert {name for name, _ in ns} == {*part["summaries"]}
    assert said.facts["load_model"] == "open"
    assert said.facts["started_at"].endswith("+00:00")


def test_entries_of_before_1_7_tell_time_and_code(tmp_path):
    entries = [[1520869180404, "u", 152957780, 201], [1520869181315, "u", 87685426.5, 200], [1, "u", 5], ["x", 1, 2, 3]]
    table, problems = read(written(tmp_path, periods(entries)))
    assert arrow.rows(table.select(["sent_at", "latency_ns", "code"])) == [
        {"sent_at": 1520869180404000000 - 152957780, "latency_ns": 152957780, "code": 201},
        {"sent_at": 1520869181315000000 - 87685426, "latency_ns": 87685426, "code": 200},
    ]
    assert problems.texts() == ["holds 2 corrupt records"]


def test_a_code_is_known_where_a_period_had_only_one(tmp_path):
    path = written(tmp_path, periods([1000000], [2000000], codes={"204": 1}))
    assert read(path)[0]["code"].to_pylist() == [204, 204]
    path = written(tmp_path, periods([1000000, 2000000], codes={"200": 1, "500": 1}))
    assert read(path)[0]["code"].to_pylist() == [None, None]


def test_keys_in_another_order_make_no_difference(tmp_path):
    original = json.loads(samples.content("one.artillery.json"))
    turned = {key: original[key] for key in ("intermediate", "aggregate")}
    turned["intermediate"] = [dict(reversed(period.items())) for period in original["intermediate"]]
    expected = read(written(tmp_path, original))
    found = read(written(tmp_path, turned, "2.artillery.json"))
    assert found[0] == expected[0]
    assert found[1].texts() == []


def test_windows_line_ends_and_compression(tmp_path):
    content = samples.content("one.artillery.json")
    expected = read(written(tmp_path, content))[0]
    assert read(written(tmp_path, content.replace(b"\n", b"\r\n"), "2.artillery.json"))[0] == expected
    assert read(written(tmp_path, rawfiles.compress(content), "3.artillery.json.zst"))[0] == expected


# --- phases ----------------------------------------------------------------------------------------------------------

TWO_PHASES = [{"duration": 20, "arrivalRate": 1, "name": "warm"}, {"duration": "20", "arrivalRate": "2"}]


def phases_of(tmp_path: Path, content: dict) -> list:
    return read(written(tmp_path, content))[0]["phase"].to_pylist()


def test_a_period_within_a_phase_is_of_it_and_one_across_is_of_neither(tmp_path):
    # Both phases ended as declared: the boundary at 20 s is one of the periods, too.
    assert phases_of(tmp_path, periods([1], [2], [3], [4], phases=TWO_PHASES)) == ["warm", "warm", "phase 1", "phase 1"]
    # Users came until 50 s, so the first phase may have ended up to 10 s late.
    across = ["warm", "warm", "warm / phase 1", "phase 1", "phase 1"]
    assert phases_of(tmp_path, periods([1], [2], [3], [4], [5], phases=TWO_PHASES)) == across
    uneven = [TWO_PHASES[0] | {"duration": 15}, TWO_PHASES[1] | {"duration": 25}]
    assert (
        phases_of(tmp_path, periods([1], [2], [3], [4], phases=uneven)) == ["warm", "warm / phase 1"] + ["phase 1"] * 2
    )


def test_answers_after_the_last_user_are_of_the_last_phase(tmp_path):
    content = periods([1], [2], [3], [4], [5], phases=TWO_PHASES)
    content["intermediate"][4]["scenariosCreated"] = 0
    assert phases_of(tmp_path, content) == ["warm", "warm", "phase 1", "phase 1", "phase 1"]


def test_what_no_phase_is_known_of(tmp_path):
    assert phases_of(tmp_path, periods([1], [2], phases=TWO_PHASES)) == [None, None], "the interval is not known"
    assert phases_of(tmp_path, periods([1], [2], phases=TWO_PHASES[:1])) == ["warm", "warm"]
    assert phases_of(tmp_path, periods([1], [2], [3])) == [None] * 3
    vague = [TWO_PHASES[0], {"duration": "soon", "arrivalRate": 1}]
    assert phases_of(tmp_path, periods([1], [2], [3], phases=vague)) == [None] * 3
    broken = periods([1], [2], [3], phases=TWO_PHASES)
    broken["intermediate"][1]["timestamp"] = "yesterday"
    assert phases_of(tmp_path, broken) == [None] * 3


# --- damage ----------------------------------------------------------------------------------------------------------


def test_an_empty_file(tmp_path):
    assert read(written(tmp_path, b""))[1].texts() == ["is truncated: it is empty"]
    assert artillery.report(written(tmp_path, b""), problems := Problems()) is None
    assert problems.texts() == ["is truncated: it is empty"]


@pytest.mark.parametrize("name", ["one.artillery.json", "two.artillery.json"])
def test_a_file_cut_anywhere_keeps_what_came_before_and_says_so(tmp_path, name):
    content = samples.content(name)
    whole = read(written(tmp_path, content))[0]
    counts = []
    for cut in cuts(content)[1:]:
        path = written(tmp_path, cut)
        table, problems = read(path)
        if name.startswith("one"):
            assert problems.texts() == ["is truncated: it ends in the middle of the Artillery report"]
        counts.append(len(table))
        assert table["latency_ns"].to_pylist() == whole["latency_ns"].to_pylist()[: len(table)]
        artillery.report(path, problems := Problems())
        assert problems.texts() == ["is truncated: it ends in the middle of the Artillery report"]
    assert counts == sorted(counts)


def test_truncated_compression(tmp_path):
    path = written(tmp_path, rawfiles.compress(samples.content("one.artillery.json"))[:-20], "1.artillery.json.zst")
    assert read(path)[1].texts() == ["is truncated: the compressed data end early"]


@pytest.mark.parametrize("name", HOSTILE)
def test_other_content_under_the_suffix_is_told(tmp_path, name):
    path = written(tmp_path, HOSTILE[name])
    table, problems = read(path)
    assert len(table) == 0
    assert artillery.report(path, problems := Problems()) is None
    assert problems.texts() != []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"NaN", "is damaged: it is not valid JSON"),
        (b"Infinity", "is damaged: it is not valid JSON"),
        (b"1,5", None),
        (b"1e400", "is damaged: it is not valid JSON"),
        (b"1e99999999999999999999", "is damaged: it is not valid JSON"),
        (b"9" * 30, "is damaged: it is not valid JSON"),
        (b"9" * 5000, "is damaged: it is not valid JSON"),
        (b"-1", "holds 1 corrupt record"),
        (b"null", "holds 1 corrupt record"),
        (b'"2000000"', "holds 1 corrupt record"),
        (b"{}", "holds 1 corrupt record"),
        (b"[[[]]]", "holds 1 corrupt record"),
        (b"[" * 3000 + b"]" * 3000, "is damaged: its values are nested too deeply"),
    ],
)
def test_one_latency_that_is_none(tmp_path, value, told):
    content = json.dumps(periods([1000000, 7777777, 3000000])).encode()
    table, problems = read(written(tmp_path, content.replace(b"7777777", value)))
    assert len(table) >= 1
    if told is None:  # a decimal comma makes two numbers of one: then the counts differ
        assert problems.texts() == ["is damaged: it counts 3 completed requests and holds 4 latencies"]
    else:
        assert problems.texts() == [told]


def test_figures_that_no_table_holds_are_left_out(tmp_path):
    content = periods([1000000])
    content["aggregate"]["latency"] = {"min": 1, "max": 10**18, "median": None, "p95": "3", "p99": True}
    content["aggregate"]["errors"] = {"\u0000<b>\ud800": 1}
    said = report(written(tmp_path, content))
    assert said.summary["min_ns"] == 1e6
    assert set(said.summary) == {"min_ns", "requests", "status_codes"}
    assert [figure.statistic.encode() for figure in said.figures if figure.metric == "errors"] != []


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "x" * 9, 7, None, {"a": [[[]]]}])
def test_times_that_no_run_has(tmp_path, stamp):
    content = periods([1000000], [2000000], [3000000], [4000000], phases=TWO_PHASES)
    content["intermediate"][0]["timestamp"] = stamp
    assert len(report(written(tmp_path, content)).figures) > 4
    content["intermediate"] = content["intermediate"][::-1]
    assert len(read(written(tmp_path, content))[0]) == 4


@pytest.mark.parametrize("text", [b"\xc0\x80", b"\xff", b"\xed\xa0\x80", "é".encode(), b"\\ud800"])
def test_names_that_are_no_utf_8_wherever_they_stand(tmp_path, text):
    content = periods([1000000], [2000000])
    content["aggregate"]["errors"] = {"E@": 1}
    for spaces in (1, (1 << 16) - 100, (1 << 16) - 101):  # across the parser's chunks too
        encoded = b" " * spaces + json.dumps(content).encode().replace(b"@", text * 50)
        path = written(tmp_path, encoded)
        assert len(read(path)[0]) == 2
        (error,) = (figure for figure in report(path).figures if figure.metric == "errors")
        assert error.statistic == "E" + ("é" * 50 if text == "é".encode() else error.statistic[1:])
        error.statistic.encode()


def test_latencies_that_are_missing_are_told(tmp_path):
    content = periods([1000000], [2000000])
    content["aggregate"]["requestsCompleted"] = 3
    assert read(written(tmp_path, content))[1].texts() == [
        "is damaged: it counts 3 completed requests and holds 2 latencies"
    ]


def test_figures_of_very_many_periods_are_bounded_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(artillery, "MOST_FIGURES", 10)
    problems = Problems()
    said = artillery.FORMATS["artillery.json"].report(written(tmp_path, periods(*([[1000000]] * 20))), problems)
    assert len([figure for figure in said.figures if figure.section]) == 10
    assert problems.texts() == ["is damaged: it has more than 10 figures; the rest is ignored"]
