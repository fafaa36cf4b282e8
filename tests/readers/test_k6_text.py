"""k6's end-of-test text: every printed figure, in both layouts."""

import re
from pathlib import Path

import pytest
from loadstone.readers import k6_text
from loadstone.readers.base import Figure, Problems, Report
from loadstone.readers.k6_text import value_of
from readers.damage import HOSTILE, cuts
from support import rawfiles, samples

REAL = [
    "1000_namespaces_steve_pagination_downstream_setup1_2023-09-27_14-43-27.txt",
    "1000_namespaces_steve_pagination_local_setup1_2023-09-27_14-38-35.txt",
    "1000_namespaces_steve_pagination_local_setup4_2023-09-27_15-58-21.txt",
    "100_configmaps_load_steve_k8s_pagination_baseline_image_local_cluster_results.txt",
    "400_configmaps_load_steve_new_pagination_vai_image_local_cluster_results.txt",
]
OURS = ["open.k6.txt", "closed.k6.txt", "full.k6.txt", "legacy.k6.txt"]


def written(tmp_path: Path, content: bytes | str, name: str = "1.k6.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def report(path: Path) -> Report:
    problems = Problems()
    found = k6_text.report(path, problems)
    assert problems.texts() == []
    return found


def of(found: Report, metric: str, section: str = "") -> dict[str, Figure]:
    return {
        figure.statistic: figure for figure in found.figures if (figure.metric, figure.section) == (metric, section)
    }


# Figures as somebody who knows nothing of k6 would find them: numbers with what stands right behind them.
NUMBER = re.compile(r"(?<![\w.])(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:[nµm]?s|%| [kMGT]?B)?(?:/s)?(?![\w.])")


def printed_figures(text: str) -> list[str]:
    """All numbers on the lines of metrics, and those that follow a check that failed."""
    found = []
    for line in text.splitlines():
        if re.search(r"\.{3}: ", line):
            found += NUMBER.findall(re.sub(r"p\([\d.]+\)=", " ", line.split("...: ", 1)[1]))
        elif "↳  " in line:
            found += NUMBER.findall(line)
    return sorted(figure.strip() for figure in found)


def given_back(found: Report) -> list[str]:
    marks = {"✓", "✗"}
    return sorted(
        figure.text for figure in found.figures if figure.section != "THRESHOLDS" and figure.text not in marks
    )


@pytest.mark.parametrize("name", REAL)
def test_every_figure_of_the_real_texts_is_given_back(shared, name):
    path = shared / "k6" / name
    text = path.read_text()
    assert len(printed_figures(text)) > 60
    assert given_back(report(path)) == printed_figures(text)


@pytest.mark.parametrize("name", OURS)
def test_every_figure_of_our_texts_is_given_back(tmp_path, name):
    text = samples.content(name).decode()
    assert given_back(report(written(tmp_path, text))) == printed_figures(text)


def test_one_real_text_figure_by_figure(shared):
    found = report(shared / "k6" / REAL[0])
    duration = {
        name: (figure.value, figure.unit, figure.text) for name, figure in of(found, "http_req_duration").items()
    }
    assert duration == {
        "avg": (437_640_000, "ns", "437.64ms"),
        "min": (156_120_000, "ns", "156.12ms"),
        "med": (347_550_000, "ns", "347.55ms"),
        "max": (34_590_000_000, "ns", "34.59s"),
        "p(90)": (519_900_000, "ns", "519.9ms"),
        "p(95)": (616_580_000, "ns", "616.58ms"),
    }
    assert of(found, "http_req_duration{expected_response:true}")["avg"].text == "437.64ms"
    assert of(found, "http_req_blocked")["p(95)"].value == 2000
    assert of(found, "http_reqs")["rate"] == Figure("", "http_reqs", "rate", 6.110828, "requests/s", "6.110828/s")
    assert of(found, "iterations")["rate"].unit == "1/s"
    assert of(found, "data_received")["count"] == Figure("", "data_received", "count", 188e6, "bytes", "188 MB")
    assert of(found, "data_sent")["rate"] == Figure("", "data_sent", "rate", 3400, "bytes/s", "3.4 kB/s")
    assert {name: figure.value for name, figure in of(found, "checks").items()} == {
        "rate": 1,
        "passes": 2165,
        "fails": 0,
    }
    assert {name: figure.value for name, figure in of(found, "vus").items()} == {"value": 1, "min": 0, "max": 3}
    slow = "checks{check:no slow pagination errors (410 Gone) detected}"
    assert of(found, slow)["passed"] == Figure("", slow, "passed", 1, "", "✓")
    assert of(found, "checks{check:logging in returns status 200}", "::setup")["passed"].value == 1
    assert found.summary == {
        "requests": 1085,
        "success": 1,
        "mean_ns": 437_640_000,
        "min_ns": 156_120_000,
        "p50_ns": 347_550_000,
        "p90_ns": 519_900_000,
        "p95_ns": 616_580_000,
        "max_ns": 34_590_000_000,
    }
    assert found.facts == {
        "load_model": "closed",
        "users": "3",
        "duration_s": "177.6",
    }


def test_a_real_text_with_p99_and_count(shared):
    found = report(shared / "k6" / REAL[4])
    assert found.summary["p99_ns"] == 219_730_000
    assert "p90_ns" not in found.summary
    assert of(found, "http_req_duration")["count"] == Figure("", "http_req_duration", "count", 1801, "", "1801")
    assert found.facts["users"] == "10"
    assert [phase.name for phase in found.phases] == ["list"]


# --- the layout since 1.0 --------------------------------------------------------------------------------------------


def test_sections_of_scenarios_and_groups_stand_apart_from_the_whole_run(tmp_path):
    found = report(written(tmp_path, samples.content("full.k6.txt")))
    sections = {figure.section for figure in found.figures}
    assert sections == {
        "",
        "THRESHOLDS",
        "SCENARIO: steady",
        "SCENARIO: steady::others",
        "SCENARIO: steady::others::deep",
    }
    totals = {section: of(found, "http_reqs", section)["count"].value for section in sections - {"THRESHOLDS"}}
    assert totals[""] == totals["SCENARIO: steady"] + 2, "setup and teardown are of no scenario"
    assert totals["SCENARIO: steady"] > totals["SCENARIO: steady::others"] > totals["SCENARIO: steady::others::deep"]
    assert found.summary["requests"] == totals[""]


def test_thresholds_with_their_outcome_and_what_it_rests_on(tmp_path):
    found = report(written(tmp_path, samples.content("open.k6.txt")))
    kept = of(found, "http_req_duration", "THRESHOLDS")
    assert {name: figure.text for name, figure in kept.items() if figure.text in "✓✗"} == {
        "p(95)<500": "✓",
        "avg<1": "✗",
    }
    assert kept["avg"] == Figure("THRESHOLDS", **vars_of(of(found, "http_req_duration")["avg"]))
    assert kept["avg<1"].value == 0
    assert of(found, "http_req_duration{expected_response:true}", "THRESHOLDS")["med<400"].value == 1
    assert of(found, "http_reqs", "THRESHOLDS")["count>10"].value == 1


def vars_of(figure: Figure) -> dict:
    return {name: value for name, value in vars(figure).items() if name != "section"}


def test_thresholds_of_the_old_layout_are_a_mark(tmp_path):
    found = report(written(tmp_path, samples.content("legacy.k6.txt")))
    assert of(found, "http_req_duration", "THRESHOLDS")["thresholds"].text == "✗"
    assert of(found, "checks", "THRESHOLDS")["thresholds"].text == "✓"
    assert of(found, "http_req_duration{expected_response:true}", "THRESHOLDS")["thresholds"].value == 1


def test_checks_that_failed_tell_how_often(tmp_path):
    for name in ("open.k6.txt", "legacy.k6.txt"):
        text = samples.content(name).decode()
        share, passes, fails = re.search(r"↳  (\d+)% — ✓ (\d+) / ✗ (\d+)", text).groups()
        check = of(report(written(tmp_path, text)), "checks{check:is fast = 5ms}")
        assert {name: figure.value for name, figure in check.items()} == {
            "passed": 0,
            "rate": int(share) / 100,
            "passes": int(passes),
            "fails": int(fails),
        }


# --- load models -----------------------------------------------------------------------------------------------------

END = """
     http_req_duration...: avg=1ms min=1ms med=1ms max=1ms p(90)=1ms p(95)=1ms
     http_reqs...........: 1   1/s
     iterations..........: 1   1/s
"""


@pytest.mark.parametrize(
    ("line", "model", "users"),
    [
        ("list   [   2% ] 3 VUs  0d00h00m03.9s/24h0m0s  02/90 iters, 30 per VU", "closed", "3"),
        ("shop ✓ [ 100% ] 5 VUs  00.4s/10m0s  20/20 shared iters", "closed", "5"),
        ("default   [  30% ] 7 VUs  03.0s/10s", "closed", "7"),
        ("default   [  30% ] 03/10 VUs  03.0s/10s", "closed", None),
        ("steady   [  20% ] 01/05 VUs  1.0s/5s  20.00 iters/s", "open", None),
        ("steady ✓ [======] 00/05 VUs  5s  20.00 iters/s", "open", None),
        ("     * list: 30 iterations for each of 3 VUs (maxDuration: 24h0m0s, gracefulStop: 30s)", "closed", "3"),
        ("     * list: 30 iterations shared among 4 VUs (maxDuration: 10m0s)", "closed", "4"),
        ("     * list: 6 looping VUs for 1m30s (gracefulStop: 30s)", "closed", "6"),
        ("     * list: Up to 6 looping VUs for 1m30s over 3 stages (gracefulRampDown: 30s)", "closed", None),
        ("     * list: 20.50 iterations/s for 5s (maxVUs: 5-10, gracefulStop: 30s)", "open", None),
        ("     * list: Up to 50.00 iterations/s for 3m0s over 2 stages (maxVUs: 5)", "open", None),
        ("     * list: Externally controlled execution with 5 VUs (x)", None, None),
        ("list • [   0% ] waiting  0.0s", None, None),
    ],
)
def test_the_load_model_by_what_the_executor_says(tmp_path, line, model, users):
    said = report(written(tmp_path, f"{line}\n{END}")).facts
    assert (said.get("load_model"), said.get("users")) == (model, users)


def test_scenarios_of_several_models_have_none_in_common(tmp_path):
    lines = "a   [ 1% ] 3 VUs  1s/2s\nb   [ 1% ] 1/5 VUs  1s/5s  20.00 iters/s\n"
    said = report(written(tmp_path, lines + END)).facts
    assert "load_model" not in said
    assert "users" not in said


def test_scenarios_as_phases(tmp_path):
    lines = "  * a: 20.50 iterations/s for 1m5s (maxVUs: 5)\n  * b: 6 looping VUs for 1h0m0.5s (gracefulStop: 30s)\n"
    phases = report(written(tmp_path, lines + END)).phases
    assert [(phase.name, phase.duration_s, phase.rate) for phase in phases] == [("a", 65, 20.5), ("b", 3600.5, 6)]


# --- how figures are printed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("0s", 0, "ns"),
        ("999ns", 999, "ns"),
        ("624.15µs", 624_150, "ns"),
        ("624.15\u03bcs", 624_150, "ns"),
        ("222.15ms", 222_150_000, "ns"),
        ("1m30s", 90e9, "ns"),
        ("2h3m4s", 7384e9, "ns"),
        ("9 B", 9, "bytes"),
        ("1.0 MB", 1e6, "bytes"),
        ("104 kB/s", 104_000, "bytes/s"),
        ("99.52%", 0.9952, "share"),
        ("1801", 1801, ""),
        ("0.506889/s", 0.506889, "1/s"),
        ("-0.5", -0.5, ""),
    ],
)
def test_printed_figures(text, value, unit):
    assert value_of(text) == (value, unit)


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_windows_line_ends_colours_and_compression(tmp_path, name):
    content = samples.content(name)
    expected = report(written(tmp_path, content))
    assert report(written(tmp_path, content.replace(b"\n", b"\r\n"), "2.k6.txt")) == expected
    coloured = re.sub(rb"=(\S+)", b"=\x1b[36m\\1\x1b[0m", content)
    assert report(written(tmp_path, coloured, "3.k6.txt")).summary == expected.summary
    assert report(written(tmp_path, rawfiles.compress(content), "4.k6.txt.zst")) == expected


@pytest.mark.parametrize("name", OURS)
def test_a_text_cut_anywhere_gives_no_figure_that_it_does_not_hold(tmp_path, name):
    content = samples.content(name)
    expected = {(f.section, f.metric, f.statistic): f for f in report(written(tmp_path, content)).figures}
    end = content.find(b"data_sent" if name != "legacy.k6.txt" else b"\n     iterations.")
    for cut in cuts(content, 150)[1:]:
        problems = Problems()
        found = k6_text.report(written(tmp_path, cut), problems)
        assert problems.texts() or len(cut) > end
        for figure in [] if found is None else found.figures:
            whole = expected.get((figure.section, figure.metric, figure.statistic))
            assert whole is not None or cut.endswith(figure.metric.removesuffix("}").encode().rpartition(b":")[2])
            # Only the very last figure can be a part of one.
            assert whole is None or figure == whole or cut.endswith(figure.text.encode())


def test_an_empty_file(tmp_path):
    assert k6_text.report(written(tmp_path, b""), problems := Problems()) is None
    assert problems.texts() == ["is truncated: it is empty"]


@pytest.mark.parametrize("name", HOSTILE)
def test_other_content_under_the_suffix_is_told(tmp_path, name):
    assert k6_text.report(written(tmp_path, HOSTILE[name]), problems := Problems()) is None
    assert problems.texts() == ["is damaged: it is not k6's end-of-test text"]


def test_a_run_that_was_ended_before_its_figures(tmp_path):
    text = samples.content("open.k6.txt").decode().partition("  █ THRESHOLDS")[0]
    found = k6_text.report(written(tmp_path, text), problems := Problems())
    assert problems.texts() == ["is truncated: it ends before the figures of the whole run"]
    assert found.facts["load_model"] == "open"
    assert found.summary == {}


@pytest.mark.parametrize(
    "old",
    ["avg=437.64ms", "188 MB  1.1 MB/s", "✓ 2165     ✗ 0", "min=0      max=3"],
)
@pytest.mark.parametrize("change", ["comma", "nothing", "NaN", "Infinity", "huge"])
def test_a_figure_that_is_none_is_told_with_its_line(shared, tmp_path, old, change):
    text = (shared / "k6" / REAL[0]).read_text()
    number = re.search(r"\d+(\.\d+)?", old)[0]
    new = {"comma": "1,1", "nothing": "", "NaN": "NaN", "Infinity": "+Inf", "huge": "9" * 30}[change]
    damaged = old.replace(number, new, 1)
    assert damaged != old
    path = written(tmp_path, text.replace(old, damaged, 1))
    line = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if damaged in line and "...: " in line)
    k6_text.report(path, problems := Problems())
    assert problems.texts() == [f"holds 1 corrupt record (line {line})"]


@pytest.mark.parametrize("share", [".%", "1.2.3%", "...: %", "87.%"])
def test_a_share_that_is_no_number_is_told_with_its_line(tmp_path, share):
    text = samples.content("open.k6.txt").decode()
    path = written(tmp_path, text.replace("checks_succeeded...: 90.47%", f"checks_succeeded...: {share}", 1))
    line = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if share in line)
    k6_text.report(path, problems := Problems())
    assert problems.texts() == [f"holds 1 corrupt record (line {line})"]


def test_two_runs_in_one_file_are_told_and_the_first_counts(tmp_path):
    content = samples.content("closed.k6.txt")
    found = k6_text.report(written(tmp_path, content + samples.content("open.k6.txt")), problems := Problems())
    assert problems.texts() == ["is damaged: it holds figures of more than one run"]
    assert found.summary == report(written(tmp_path, content, "2.k6.txt")).summary


def test_checks_of_the_same_name_in_several_groups(tmp_path):
    found = report(
        written(
            tmp_path,
            f"  █ TOTAL RESULTS\n\n    ✓ ok\n    ✗ ok\n      ↳  50% — ✓ 1 / ✗ 1\n{END}    data_sent...: 1 B 1 B/s",
        )
    )
    assert [figure.text for figure in found.figures if figure.metric == "checks{check:ok}"] == [
        "✓",
        "✗",
        "50%",
        "1",
        "1",
    ]


def test_two_thresholds_of_one_statistic(tmp_path):
    text = "  █ THRESHOLDS\n\n    m\n    ✓ 'p(95)<5' p(95)=1ms\n    ✗ 'p(95)<.5' p(95)=1ms\n\n  █ TOTAL RESULTS\n"
    found = report(written(tmp_path, f"{text}{END}    data_sent...: 1 B 1 B/s"))
    assert [figure.statistic for figure in found.figures if figure.metric == "m"] == ["p(95)<5", "p(95)", "p(95)<.5"]


def test_hostile_names_are_only_names(tmp_path):
    name = '<img src=x onerror=alert(1)> "; DROP TABLE x; -- \x00{}'
    found = report(written(tmp_path, f"     ✓ {name}\n     █ {name}\n       ✗ {name}\n{END}"))
    assert [(figure.section, figure.metric) for figure in found.figures[:2]] == [
        ("", f"checks{{check:{name}}}"),
        (f"::{name}", f"checks{{check:{name}}}"),
    ]


def test_lines_without_end_are_bounded(tmp_path):
    scenarios = "".join(f"s{k}   [ 1% ] 3 VUs  1s/2s\n" for k in range(5000))
    found = report(written(tmp_path, scenarios + " " * 100_000 + "█ " + "x" * 100_000 + "\n" + END))
    assert len(found.phases) <= 1000
