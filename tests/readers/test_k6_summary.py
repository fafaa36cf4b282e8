"""k6's end-of-test figures as JSON, in each form."""

import json
from pathlib import Path

import pytest
from loadstone.readers import k6_summary, k6_text
from loadstone.readers.base import Figure, Problems, Report
from readers.damage import HOSTILE, cuts
from support import rawfiles, samples

EXPORTS = ["open", "closed", "legacy"]


def written(tmp_path: Path, content: object, name: str = "1.k6.summary.json") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def report(path: Path) -> Report:
    problems = Problems()
    found = k6_summary.report(path, problems)
    assert problems.texts() == []
    return found


def by_key(found: Report) -> dict[tuple[str, str, str], Figure]:
    return {(figure.section, figure.metric, figure.statistic): figure for figure in found.figures}


@pytest.mark.parametrize("run", EXPORTS)
def test_every_number_of_an_export_is_given_back(tmp_path, run):
    content = json.loads(samples.content(f"{run}.k6.summary.json"))
    found = by_key(report(written(tmp_path, content)))
    for name, metric in content["metrics"].items():
        for statistic, value in metric.items():
            if statistic == "thresholds":
                kept = {source: found.pop(("THRESHOLDS", name, source)).text for source in value}
                assert kept == {source: "✗" if crossed else "✓" for source, crossed in value.items()}
                continue
            share = "passes" in metric and statistic == "value"
            figure = found.pop(("", name, "rate" if share else statistic))
            assert json.loads(figure.text) == value
            scale = 1e6 if figure.unit == "ns" else 1
            assert figure.value == pytest.approx(value * scale, rel=1e-15)
    # What is left are the checks.
    assert {metric.partition(":")[0] for _, metric, _ in found} <= {"checks{check"}
    assert {section for section, _, _ in found} <= {"", "::others::deep"}


@pytest.mark.parametrize("run", [*EXPORTS, "full"])
def test_it_agrees_with_the_text_of_the_same_run(tmp_path, run):
    exact = by_key(report(written(tmp_path, samples.content(f"{run}.k6.summary.json"))))
    path = tmp_path / "1.k6.txt"
    path.write_bytes(samples.content(f"{run}.k6.txt"))
    printed = by_key(k6_text.report(path, Problems()))
    both = exact.keys() & printed.keys()
    assert len(both) > 25
    for key in both:
        assert exact[key].unit == printed[key].unit
        assert printed[key].value == pytest.approx(exact[key].value, rel=0.06, abs=1e-3)


def test_units_by_metric(tmp_path):
    found = by_key(report(written(tmp_path, samples.content("open.k6.summary.json"))))
    units = {key: figure.unit for key, figure in found.items()}
    assert units["", "http_req_duration", "avg"] == units["", "iteration_duration", "p(99)"] == "ns"
    assert units["", "http_req_duration", "count"] == units["", "http_reqs", "count"] == ""
    assert units["", "http_req_failed", "rate"] == units["", "checks", "rate"] == "share"
    assert units["", "http_reqs", "rate"] == "requests/s"
    assert (units["", "data_sent", "count"], units["", "data_sent", "rate"]) == ("bytes", "bytes/s")
    assert units["", "iterations", "rate"] == "1/s"
    assert units["", "vus", "max"] == units["", "sizes", "avg"] == ""


def test_what_handle_summary_was_given(tmp_path):
    data = {
        "root_group": {
            "groups": [{"name": "inner", "groups": [], "checks": [{"name": "ok", "passes": 3, "fails": 1}]}],
            "checks": [],
        },
        "state": {"testRunDurationMs": 5061.032223},
        "metrics": {
            "waiting": {"type": "trend", "contains": "time", "values": {"avg": 1.25, "count": 4}},
            "http_req_duration": {
                "type": "trend",
                "contains": "time",
                "values": {"avg": 64.96357},
                "thresholds": {"avg<1": {"ok": False}},
            },
            "http_reqs": {"type": "counter", "contains": "default", "values": {"count": 4, "rate": 0.8}},
            "sent": {"type": "counter", "contains": "data", "values": {"count": 40, "rate": 8}},
        },
    }
    found = report(written(tmp_path, data))
    assert found.facts == {"duration_s": "5.06103222"}
    assert found.summary == {"mean_ns": 64_963_570, "requests": 4}
    figures = by_key(found)
    assert figures["", "waiting", "avg"] == Figure("", "waiting", "avg", 1_250_000, "ns", "1.25")
    assert figures["", "waiting", "count"].unit == ""
    assert figures["", "sent", "rate"].unit == "bytes/s"
    assert figures["THRESHOLDS", "http_req_duration", "avg<1"].text == "✗"
    assert figures["::inner", "checks{check:ok}", "fails"].value == 1
    assert figures["::inner", "checks{check:ok}", "passed"].value == 0


def test_the_machine_readable_form(tmp_path):
    found = report(written(tmp_path, samples.content("full.k6.summary.json")))
    original = json.loads(samples.content("full.k6.summary.json"))
    assert found.facts == {"duration_s": f"{original['config']['duration']:.9g}"}
    figures = by_key(found)
    for metric in original["results"]["metrics"] + original["results"]["checks"]["metrics"]:
        for statistic, value in metric["values"].items():
            assert json.loads(figures["", metric["name"], statistic].text) == value
    duration = next(m["values"] for m in original["results"]["metrics"] if m["name"] == "http_req_duration")
    assert found.summary["p95_ns"] == pytest.approx(duration["p95"] * 1e6)
    assert 0 < found.summary["success"] < 1
    assert not any("import http" in str(figure) for figure in found.figures)
    assert "script" not in found.facts


def test_windows_line_ends_and_compression(tmp_path):
    content = samples.content("open.k6.summary.json")
    expected = report(written(tmp_path, content))
    assert report(written(tmp_path, content.replace(b"\n", b"\r\n"))) == expected
    assert report(written(tmp_path, rawfiles.compress(content), "2.k6.summary.json.zst")) == expected


def test_a_file_cut_anywhere_is_none(tmp_path):
    for cut in cuts(samples.content("open.k6.summary.json"))[1:]:
        assert k6_summary.report(written(tmp_path, cut), problems := Problems()) is None
        assert problems.texts() == ["is damaged: it is not JSON"]


@pytest.mark.parametrize("name", HOSTILE)
def test_other_content_under_the_suffix_is_told(tmp_path, name):
    assert k6_summary.report(written(tmp_path, HOSTILE[name]), problems := Problems()) is None
    assert problems.texts() != []


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, '"1,5"', "null", "[]", "true"])
def test_values_that_are_none_are_left_out(tmp_path, value):
    content = b'{"metrics": {"http_req_duration": {"avg": %s, "max": 2}}}' % value.encode()
    assert report(written(tmp_path, content)).summary == {"max_ns": 2_000_000}


@pytest.mark.parametrize("part", ["groups", "checks"])
def test_groups_that_are_none_and_groups_without_end(tmp_path, part):
    group: dict = {part: [None, 1, {"name": 3, "passes": "x"}, {"name": "\ud800", "passes": 1, "fails": 0}]}
    for _ in range(300):
        group = {"name": "g", "groups": {"g": group, "h": []}}
    content = {"metrics": {"http_reqs": {"count": 1}}, "root_group": group}
    assert report(written(tmp_path, content)).summary == {"requests": 1}
