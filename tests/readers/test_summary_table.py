"""Rows of printed tables, of comma-separated values and of Markdown."""

import pytest
from loadstone.readers import FORMATS, markdown, summary_table
from loadstone.readers.base import Problems

CSV = (
    b"a note above\ntag,count,avg,min,med,max,p(95),count\nbase,100,2.5,1,2.25,9,7.5,40\nvai,100,1.5,1,1.25,8,6.5,41\n"
)
TABLE = (
    b"# Results\n\n## Second\n\n| Name | Min (ms) | Median (ms) | 99p (s) |\n"
    b"|---|---:|---|---|\n| a | 1 | 2 | 0.003 |\n"
)


def parse(text: str, unit=None):
    problems = Problems()
    return summary_table.parse(text, problems, unit), problems


def test_every_row_of_a_table_is_one_with_its_names_and_what_it_says_of_itself():
    first, second = summary_table.rows(CSV)
    assert first.labels == {"tag": "base", "count": "100"} and second.line == 4
    assert CSV[second.start :] == second.text and second.head == CSV.splitlines(keepends=True)[1]
    report, problems = parse((second.head + second.text).decode(), "ms")
    assert report.summary == {
        "requests": 41,
        "mean_ns": 1.5e6,
        "min_ns": 1e6,
        "p50_ns": 1.25e6,
        "max_ns": 8e6,
        "p95_ns": 6.5e6,
    }
    assert [figure.text for figure in report.figures if figure.statistic == "p(95)"] == ["6.5"]
    assert problems == Problems()


def test_rows_of_markdown_tables_know_their_headings():
    (block,) = markdown.rows(TABLE)
    assert (block.headings, block.number, block.line, block.labels) == (("Results", "Second"), 1, 7, {"Name": "a"})
    assert TABLE[block.start :] == block.text and block.content.startswith(b"| Name")
    report, problems = parse(block.content.decode())
    assert report.summary == {"min_ns": 1e6, "p50_ns": 2e6, "p99_ns": 3e6} and problems == Problems()
    fenced = b"```\n" + TABLE + b"```\n"
    assert list(markdown.rows(fenced)) == []


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("p50", "p50_ns"),
        ("50%", "p50_ns"),
        ("P(99.9)", "p999_ns"),
        ("95p", "p95_ns"),
        ("99th percentile", "p99_ns"),
        ("Average", "mean_ns"),
        ("max_ms", "max_ns"),
        ("maximum [us]", "max_ns"),
    ],
)
def test_names_of_statistics(name, statistic):
    found = summary_table.columns(["min", "max", "x", name])
    assert found[3].statistic == statistic
    assert summary_table.columns(["minutes", "medium", "p", "p101x"]) == {}


def test_a_unit_stands_behind_the_figure_in_its_column_or_in_the_declaration():
    assert parse("min,max\n588.001µs,1m0.5s\n")[0].summary == {"min_ns": 588_001, "max_ns": 60_500_000_000}
    assert parse("min_us,max\n5,7\n", "ms")[0].summary == {"min_ns": 5000, "max_ns": 7e6}
    report, problems = parse("min,max\n5,7\n")
    assert report is None and "its latencies have no unit" in problems.damaged


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("min,max\n1,2\n3,4\n", "more than one row"),
        ("", "not a row"),
        ("name,age\nx,3\n", "not a row"),
    ],
)
def test_what_is_no_row(text, why):
    assert why in parse(text, "ms")[1].damaged


@pytest.mark.parametrize("value", ["1;5", '"1,5"', "NaN", "-3", "1e400", "١٢", "9" * 40, "\x00"])
def test_a_figure_that_is_none_is_corrupt_and_absent(value):
    report, problems = parse(f"min,mean,max\n1,{value},20\n", "ms")
    assert problems.corrupt_records == 1 and "mean_ns" not in report.summary


@pytest.mark.parametrize(
    "content", [b"", b"min,max\n", b"\xff\xfe\x00", b'min,max\n"', b"|" * 5000, b"min,max\n" * 500]
)
def test_bytes_of_any_kind_are_told_of(tmp_path, content):
    (tmp_path / "1.summary.csv").write_bytes(content)
    problems = Problems()
    assert FORMATS["summary.csv"].reading("ms")(tmp_path / "1.summary.csv", problems) is None
    assert problems.texts()
    list(markdown.rows(content))


def test_the_real_tables(shared):
    rows = list(summary_table.rows((shared / "k6/results_higher_scale.csv").read_bytes()))
    assert len(rows) == 30
    for row in rows:
        report, problems = parse((row.head + row.text).decode(), "ms")
        assert problems == Problems()
        assert [figure.text for figure in report.figures] == row.text.decode().strip().split(",")[4:]
    (document,) = shared.glob("seeds/001_*.txt")
    printed = [parse(block.content.decode(), "ms")[0] for block in markdown.rows(document.read_bytes())]
    names = ("min_ns", "max_ns", "p50_ns", "p95_ns", "p99_ns")
    found = [tuple(report.summary[name] / 1e6 for name in names) for report in printed]
    assert found == [(1, 90, 2, 3, 3), (7, 391, 12, 20, 52), (1, 16, 2, 2, 3)]
