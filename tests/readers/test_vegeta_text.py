"""Vegeta's text report, in both layouts."""

import re
from pathlib import Path

import pytest
from loadstone.readers import Problems, markdown, vegeta_report
from support import rawfiles

OLD = """\
Requests      [total, rate, throughput]  12000, 200.02, 199.85
Duration      [total, attack, wait]      1m0.043536637s, 59.994951818s, 48.584819ms
Latencies     [mean, 50, 95, 99, max]    44.431828ms, 50.783723ms, 59.100058ms, 107.767342ms, 448.815162ms
Bytes In      [total, mean]              24000, 2.00
Bytes Out     [total, mean]              0, 0.00
Success       [ratio]                    100.00%
Status Codes  [code:count]               200:12000
"""
NEW = """\
Requests      [total, rate, throughput]         1000, 100.10, 89.63
Duration      [total, attack, wait]             10.041s, 9.99s, 50.588\u00b5s
Latencies     [min, mean, 50, 90, 95, 99, max]  588.001\u00b5s, 4.1ms, 3.9ms, 5.4ms, 9.11ms, 18.509ms, 1.0734406s
Bytes In      [total, mean]                     553500, 553.50
Bytes Out     [total, mean]                     12, 0.01
Success       [ratio]                           90.00%
Status Codes  [code:count]                      0:40  200:900  503:60  \n\
Error Set:
503 Service Unavailable
Get "http://x/": dial tcp <script>: connect: connection refused
"""
UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


def parsed(text: str):
    """The report in a text, and what was wrong with it."""
    problems = Problems()
    return vegeta_report.parse_text(text, problems), problems.texts()


def independently(text: str) -> dict[tuple[str, str], tuple[str, float]]:
    """Every figure of a text by other means: its text, and its value as plain arithmetic has it."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\w+(?: \w+)?) +\[(.*)\] +(\S.*?) *$", line)
        if match is None:
            continue
        metric, names, values = match.groups()
        if names == "code:count":
            pairs = [pair.split(":") for pair in values.split()]
            found |= {(metric, code): (count, float(count)) for code, count in pairs}
            continue
        for name, value in zip(names.split(", "), values.split(", "), strict=True):
            found[metric, name] = (value, plain(value))
    return found


def plain(text: str) -> float:
    if text.endswith("%"):
        return float(text[:-1]) / 100
    parts = re.findall(r"([\d.]+)(h|ms|\u00b5s|ns|m|s)", text)
    return sum(float(number) * UNITS[unit] for number, unit in parts) if parts else float(text)


def check_every_figure(text: str) -> None:
    found, problems = parsed(text)
    expected = independently(text)
    assert problems == []
    assert {(figure.metric, figure.statistic): figure.text for figure in found.figures} == {
        name: value[0] for name, value in expected.items()
    }
    for figure in found.figures:
        assert figure.value == pytest.approx(expected[figure.metric, figure.statistic][1], rel=1e-12)
        assert figure.unit != "ns" or figure.value == round(figure.value), "nanoseconds come out whole"


def test_the_layout_before_12_8() -> None:
    found, problems = parsed(OLD)
    assert problems == []
    assert found.summary == {
        "requests": 12000,
        "success": 1.0,
        "mean_ns": 44_431_828,
        "p50_ns": 50_783_723,
        "p95_ns": 59_100_058,
        "p99_ns": 107_767_342,
        "max_ns": 448_815_162,
        "throughput": 199.85,
        "status_codes": {"200": 12000},
    }
    assert found.facts == {"duration_s": "59.994951818"}
    check_every_figure(OLD)


def test_the_share_of_successes_is_that_of_the_codes_where_they_bear_it_out() -> None:
    """99.67 % of 3000 would be 9.9 failures."""
    found, problems = parsed(
        OLD.replace("12000", "3000")
        .replace("200.02", "50.00")
        .replace("100.00%", "99.67%")
        .replace(":3000", ":2990 503:10")
    )
    assert problems == [] and found.summary["success"] == 2990 / 3000
    (printed,) = (figure for figure in found.figures if figure.metric == "Success")
    assert (printed.text, printed.value) == ("99.67%", 0.9967)


def test_the_layout_since_12_8() -> None:
    found, problems = parsed(NEW)
    assert problems == []
    assert found.summary == {
        "requests": 1000,
        "success": 0.9,
        "min_ns": 588_001,
        "mean_ns": 4_100_000,
        "p50_ns": 3_900_000,
        "p90_ns": 5_400_000,
        "p95_ns": 9_110_000,
        "p99_ns": 18_509_000,
        "max_ns": 1_073_440_600,
        "throughput": 89.63,
        "status_codes": {"0": 40, "200": 900, "503": 60},
    }
    check_every_figure(NEW)


def test_units_of_figures() -> None:
    found, _ = parsed(NEW)
    assert {
        (figure.metric, figure.statistic): figure.unit for figure in found.figures if figure.metric != "Latencies"
    } == {
        ("Requests", "total"): "",
        ("Requests", "rate"): "requests/s",
        ("Requests", "throughput"): "requests/s",
        ("Duration", "total"): "ns",
        ("Duration", "attack"): "ns",
        ("Duration", "wait"): "ns",
        ("Bytes In", "total"): "bytes",
        ("Bytes In", "mean"): "bytes",
        ("Bytes Out", "total"): "bytes",
        ("Bytes Out", "mean"): "bytes",
        ("Success", "ratio"): "share",
        ("Status Codes", "0"): "",
        ("Status Codes", "200"): "",
        ("Status Codes", "503"): "",
    }


def test_figures_are_taken_by_name_not_by_position() -> None:
    turned = OLD.replace("[mean, 50, 95, 99, max] ", "[max, 99.9, 75, mean, 33]")
    found, problems = parsed(turned)
    assert problems == []
    latencies = {name: value for name, value in found.summary.items() if name.endswith("_ns")}
    assert latencies == {
        "max_ns": 44_431_828,
        "p999_ns": 50_783_723,
        "p75_ns": 59_100_058,
        "mean_ns": 107_767_342,
    }


def test_a_live_report_says_what_the_same_report_as_json_says(tmp_path, attack) -> None:
    path = tmp_path / "1.vegeta.txt"
    path.write_bytes(rawfiles.vegeta("report", stdin=attack.binary))
    (tmp_path / "1.summary.json").write_bytes(rawfiles.vegeta("report", "-type", "json", stdin=attack.binary))
    problems = Problems()
    found = vegeta_report.FORMATS["vegeta.txt"].report(path, problems)
    assert problems.texts() == []
    told = vegeta_report.json_report(tmp_path / "1.summary.json", problems).summary
    assert set(found.summary) == {name for name, value in told.items() if value is not None} - {"started_at"}
    for name, value in found.summary.items():
        assert value == (told[name] if name == "status_codes" else pytest.approx(told[name], rel=0.01)), name
    check_every_figure(path.read_text())


@pytest.mark.parametrize(("seed", "reports"), [("002_d65809806b625668.txt", 10), ("003_41b205fb1b9435ff.txt", 8)])
def test_every_report_of_the_published_documents(shared: Path, seed: str, reports: int) -> None:
    problems = Problems()
    found = [block for block in markdown.blocks(shared / "seeds" / seed, problems) if block.kind == "vegeta.txt"]
    assert (len(found), problems.texts()) == (reports, [])
    assert len(found) == (shared / "seeds" / seed).read_text().count("\nRequests ")
    for block in found:
        check_every_figure(block.text.decode())


@pytest.mark.parametrize("text", [OLD, NEW], ids=["old", "new"])
def test_windows_line_ends_indentation_and_text_before_it(tmp_path, text) -> None:
    expected = parsed(text)[0].summary
    path = tmp_path / "1.vegeta.txt"
    for changed in (text.replace("\n", "\r\n"), "    " + text.replace("\n", "\n    "), "Report of today:\n\n" + text):
        path.write_bytes(changed.encode())
        problems = Problems()
        assert vegeta_report.FORMATS["vegeta.txt"].report(path, problems).summary == expected
        assert problems.texts() == []


@pytest.mark.parametrize("text", [OLD, NEW[: NEW.index("Error Set")]], ids=["old", "new"])
def test_cut_anywhere_it_never_says_what_the_whole_does_not(text) -> None:
    whole = {(figure.metric, figure.statistic): figure.value for figure in parsed(text)[0].figures}
    content = text.encode()
    for end in range(len(content.rstrip())):
        found, problems = parsed(content[:end].decode("utf-8", "replace"))
        assert problems, end
        for figure in found.figures if found else []:
            if figure.metric != "Status Codes":
                assert whole[figure.metric, figure.statistic] == figure.value, end


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("200.02", "200,02", "holds 1 corrupt record (line 1)"),
        ("44.431828ms", "44,431828ms", "holds 1 corrupt record (line 3)"),
        ("44.431828ms", "-44.431828ms", "holds 1 corrupt record (line 3)"),
        ("44.431828ms", "9999999999999999999h", "holds 1 corrupt record (line 3)"),
        ("44.431828ms", "NaN", "holds 1 corrupt record (line 3)"),
        ("44.431828ms, ", "", "holds 1 corrupt record (line 3)"),
        ("mean, 50", "50, 50", "holds 1 corrupt record (line 3)"),
        ("12000,", "12000.5,", "holds 1 corrupt record (line 1)"),
        ("12000,", "12\x00000,", "holds 1 corrupt record (line 1)"),
        ("100.00%", "100.00", "holds 1 corrupt record (line 6)"),
        ("100.00%", "101.00%", "holds 1 corrupt record (line 6)"),
        ("200:12000", "200:12000 :5", "holds 1 corrupt record (line 7)"),
        ("200:12000", "200:1200", "is damaged: its status codes do not add up to its requests"),
        ("200:12000", "200:11000 500:1000", "is damaged: its success ratio is not that of its status codes"),
        ("Bytes Out", "Bytes Off", "is truncated: it lacks its line Bytes Out"),
    ],
)
def test_a_wrong_line_is_told_and_the_others_are_read(old, new, problem) -> None:
    assert old in OLD
    found, problems = parsed(OLD.replace(old, new, 1))
    assert problems == [problem]
    assert found.summary
    if problem.startswith("holds"):
        assert len({figure.metric for figure in found.figures}) == 6


@pytest.mark.parametrize(
    "text", ["", "hello\n", "{}", "\x00" * 99, "Bucket  #  %  Histogram\n[0s,  5ms]  10  100.00%  ###\n"]
)
def test_what_is_no_report(text) -> None:
    assert parsed(text) == (None, ["is damaged: it is not a vegeta text report"])


def test_two_reports_in_one_file_are_not_one() -> None:
    assert parsed(OLD + OLD) == (None, ["is damaged: it holds more than one report"])
