"""HdrHistogram's percentile tables."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.readers import Problems, hdr
from support import rawfiles

COMPUTED = """\
Value(ms)  Percentile  TotalCount  1/(1-Percentile)
0.000      0.000000    0           1.00
13.500     0.500000    5000        2.00
14.600     0.750000    7500        4.00
14.600     0.900000    9000        10.00
20.001     0.990625    9906        106.67
267.007    1.000000    10000       10000000.00
"""
COUNTED = """\
       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          2           1.00
       2.000 0.500000000000         50           2.00
       4.000 0.750000000000         76           4.00
       8.001 0.875000000000         95           8.00
      16.000 0.968750000000         98          32.00
      16.000 1.000000000000        100
#[Mean    =        3.141, StdDeviation   =        2.718]
#[Max     =       16.000, Total count    =          100]
#[Buckets =           28, SubBuckets     =         2048]
"""
COMMAS = '"Value","Percentile","TotalCount","1/(1-Percentile)"\n' + "".join(
    ",".join([*line.split(), "Infinity"][:4]) + "\n" for line in COUNTED.splitlines()[2:8]
)


def parsed(text: str, unit: str = "ms"):
    """The table in a text, and what was wrong with it."""
    problems = Problems()
    return hdr.parse(text, problems, unit), problems.texts()


def bins(report) -> list[tuple[float, float, int]]:
    return [(each.lower_ns, each.upper_ns, each.count) for each in report.histogram]


def test_a_table_whose_counts_come_from_its_percentiles() -> None:
    found, problems = parsed(COMPUTED)
    assert problems == []
    assert found.summary == {
        "requests": 10000,
        "max_ns": 267_007_000,
        "p50_ns": 13_500_000,
        "p75_ns": 14_600_000,
        "p90_ns": 14_600_000,
    }
    assert bins(found) == [
        (0, 13_500_000, 5000),
        (13_500_000, 14_600_000, 4000),
        (14_600_000, 20_001_000, 906),
        (20_001_000, 267_007_000, 94),
    ]


@pytest.mark.parametrize(
    "text", [COUNTED, COUNTED.replace("        100\n#", "        100   inf\n#"), f"wrk2 says:\n{COUNTED}--\n1 2"]
)
def test_the_standard_form_with_its_footer(text) -> None:
    found, problems = parsed(text)
    assert problems == []
    assert found.summary == {
        "requests": 100,
        "max_ns": 16_000_000,
        "min_ns": 1_000_000,
        "p50_ns": 2_000_000,
        "p75_ns": 4_000_000,
        "p90_ns": 8_001_000,  # 95 of 100 took at most that, and more than 76 more than the line before
        "p95_ns": 8_001_000,
        "p99_ns": 16_000_000,
        "p999_ns": 16_000_000,
        "mean_ns": 3_141_000,
        "std_ns": 2_718_000,
    }
    assert bins(found) == [
        (0, 1_000_000, 2),
        (1_000_000, 2_000_000, 48),
        (2_000_000, 4_000_000, 26),
        (4_000_000, 8_001_000, 19),
        (8_001_000, 16_000_000, 5),
    ]
    figures = {(figure.metric, figure.statistic): (figure.value, figure.unit, figure.text) for figure in found.figures}
    assert figures["Value", "0.875000000000"] == (8_001_000, "ns", "8.001")
    assert figures["TotalCount", "0.875000000000"] == (95, "", "95")
    assert figures["SubBuckets", ""] == (2048, "", "2048")


def test_with_commas_it_has_no_footer() -> None:
    found, problems = parsed(COMMAS)
    expected, _ = parsed(COUNTED)
    assert problems == []
    assert found.histogram == expected.histogram
    assert found.summary == {
        name: value for name, value in expected.summary.items() if name not in ("mean_ns", "std_ns")
    }


@pytest.mark.parametrize(
    ("unit", "factor"), [("s", 1000), ("ms", 1), ("us", 1e-3), ("\u00b5s", 1e-3), ("\u03bcs", 1e-3), ("ns", 1e-6)]
)
def test_units(unit, factor) -> None:
    assert parsed(COMPUTED.replace("(ms)", f"({unit})"), "s")[0].summary["max_ns"] == pytest.approx(
        267_007_000 * factor
    )
    assert parsed(COUNTED, unit)[0].summary["mean_ns"] == pytest.approx(3_141_000 * factor)


def test_the_real_table_gives_its_percentiles_back(shared: Path) -> None:
    path, problems = shared / "hey/cache-1.hdr.csv", Problems()
    found = hdr.FORMATS["hdr.csv"].reading(None)(path, problems)
    assert problems.texts() == []
    rows = [line.split() for line in path.read_text().splitlines()[1:]]
    values = [(figure.statistic, figure.text) for figure in found.figures if figure.metric == "Value"]
    assert values == [(row[1], row[0]) for row in rows]
    for figure, row in zip([each for each in found.figures if each.metric == "Value"], rows, strict=True):
        assert figure.value == float(Fraction(row[0]) * 10**6)
    assert found.summary == {
        "requests": 1_000_000,
        "max_ns": 267_007_000,
        "p50_ns": 16_400_000,
        "p75_ns": 29_500_000,
        "p90_ns": 35_201_000,
        "p95_ns": 36_901_000,
    }
    # From the bins alone: so many requests took at most a line's value as it says, or as the last line of that value.
    for row in rows:
        most = max(int(other[2]) for other in rows if other[0] == row[0])
        assert sum(each.count for each in found.histogram if each.upper_ns <= float(Fraction(row[0]) * 10**6)) == most


def test_a_live_table_agrees_with_the_report_of_the_same_attack(tmp_path, attack) -> None:
    path, problems = tmp_path / "1.hdr.csv.zst", Problems()
    path.write_bytes(rawfiles.compress(rawfiles.vegeta("report", "-type", "hdrplot", stdin=attack.binary)))
    found = hdr.FORMATS["hdr.csv"].reading(None)(path, problems)
    assert problems.texts() == []
    told = attack.report["latencies"]
    assert found.summary["requests"] == attack.report["requests"]
    for column, name in (("p50_ns", "50th"), ("p90_ns", "90th"), ("p95_ns", "95th"), ("max_ns", "max")):
        assert found.summary[column] == pytest.approx(told[name], abs=2), column


LATENCIES = st.lists(st.integers(0, 400), min_size=1, max_size=60)


@given(LATENCIES, st.integers(1, 7), st.fractions(0, 1, max_denominator=1000))
def test_what_the_table_settles_is_right(latencies, ticks, share) -> None:
    text, table = as_hdr_prints(sorted(latencies), ticks)
    found, problems = parsed(text)
    assert problems == []
    lines, _ = hdr._table(text.split("\n"), 1, None, 10**6, Problems())
    least, most = hdr.bounds(lines, share, counted=True)
    assert least <= true_percentile(latencies, share) * 10**6 <= most
    assert least == most or share not in [level for level, _, _ in table]
    for each in found.histogram:
        within = [one for one in latencies if each.lower_ns < one * 1e6 <= each.upper_ns]
        zeros = latencies.count(0) if each.upper_ns == 0 or (each.lower_ns == 0 and found.summary["min_ns"] > 0) else 0
        assert each.count == len(within) + zeros
    for column, percent in (("p50_ns", 50), ("p99_ns", 99), ("p999_ns", Fraction(999, 10))):
        if column in found.summary:
            assert found.summary[column] == true_percentile(latencies, Fraction(percent) / 100) * 1e6


def true_percentile(latencies: list[int], share: Fraction) -> int:
    """The smallest value that so large a share is at most."""
    rank = max(1, -(-share * len(latencies) // 1))
    return sorted(latencies)[int(rank) - 1]


def as_hdr_prints(latencies: list[int], ticks: int) -> tuple[str, list[tuple[Fraction, int, int]]]:
    """The table of exact values in HdrHistogram's form, with levels of decimals that are printed in full."""
    levels = sorted({Fraction(step, 8 * ticks * 125) for step in range(0, 1000 * ticks, 97)} | {Fraction(1)})
    levels = [Fraction(f"{float(level):.6f}") for level in levels]
    table = []
    for level in levels:
        value = true_percentile(latencies, level)
        table.append((level, value, sum(one <= value for one in latencies)))
    rows = (f"{value}.000 {float(level):.12f} {count} {1.5:.2f}" for level, value, count in table)
    return "Value Percentile TotalCount 1/(1-Percentile)\n" + "\n".join(rows) + "\n", table


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("14.600     0.75", "14,600     0.75", "holds 1 corrupt record (line 4)"),
        ("14.600     0.75", "12.600     0.75", "holds 1 corrupt record (line 4)"),
        ("14.600     0.75", "-4.600     0.75", "holds 1 corrupt record (line 4)"),
        ("14.600     0.75", "14.600     1.75", "holds 1 corrupt record (line 4)"),
        ("14.600     0.75", "Infinity   0.75", "holds 1 corrupt record (line 4)"),
        ("7500 ", "4500 ", "holds 1 corrupt record (line 4)"),
        ("7500 ", "7500.5 ", "holds 1 corrupt record (line 4)"),
        ("7500 ", "75\x0000 ", "holds 1 corrupt record (line 4)"),
        ("4.00", "four", "holds 1 corrupt record (line 4)"),
        ("7500        4.00", "7500", "holds 1 corrupt record (line 4)"),
        ("267.007    1.000000    10000       10000000.00\n", "", "is truncated: it ends before percentile 1"),
    ],
)
def test_a_wrong_line_is_told_and_the_others_are_read(old, new, problem) -> None:
    assert old in COMPUTED
    found, problems = parsed(COMPUTED.replace(old, new, 1))
    assert problems == [problem]
    assert found.summary["p50_ns"] == 13_500_000
    assert ("requests" in found.summary) == problem.startswith("holds")


def test_a_footer_that_contradicts_the_table() -> None:
    assert parsed(COUNTED.replace("   100]", "   101]"))[1] == [
        "is damaged: its Total count is not that of its last line"
    ]
    assert parsed(COUNTED.replace("2.718]", "2.7"))[1] == ["holds 1 corrupt record (line 9)"]


@pytest.mark.parametrize(
    "text", [COMPUTED, COUNTED[: COUNTED.index("#")], COMMAS], ids=["computed", "counted", "commas"]
)
def test_cut_anywhere_it_is_noticed_or_whole(text) -> None:
    whole, _ = parsed(text)
    values = {(figure.metric, figure.statistic): figure.value for figure in whole.figures}
    last = text.rstrip().rindex("\n")
    for end in range(len(text)):
        found, problems = parsed(text[:end])
        if not problems:
            assert end > last
            assert (found.histogram, found.summary) == (whole.histogram, whole.summary), end
        for figure in found.figures if found else []:
            assert values[figure.metric, figure.statistic] == figure.value, end


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "\x00" * 99,
        "Value Percentile\n1 2\n",
        "Value(px) Percentile TotalCount 1/(1-Percentile)\n1 1 1 1\n",
    ],
)
def test_what_is_no_table(text) -> None:
    assert parsed(text) == (None, ["is damaged: it is not an HdrHistogram percentile table (Value, Percentile, ...)"])


def test_a_table_without_lines() -> None:
    assert parsed(COMPUTED.splitlines(keepends=True)[0]) == (None, ["is damaged: it has no line with a percentile"])


def test_windows_line_ends(tmp_path) -> None:
    path, problems = tmp_path / "1.hdr.csv", Problems()
    path.write_bytes(COUNTED.replace("\n", "\r\n").encode())
    assert hdr.FORMATS["hdr.csv"].reading(None)(path, problems) == parsed(COUNTED)[0]
    assert problems.texts() == []
