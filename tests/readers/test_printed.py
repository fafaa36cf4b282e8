"""Small files of text, and the figures in them without losing a digit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.readers import Problems, base, stream
from support import rawfiles

DURATIONS = {
    "1m0.04s": 60_040_000_000,
    "1m0.043536637s": 60_043_536_637,
    "107.767342ms": 107_767_342,
    "588.001\u00b5s": 588_001,
    "588.001\u03bcs": 588_001,
    "588.001us": 588_001,
    "5m0s": 300 * 10**9,
    "1h2m3.000000004s": 3_723_000_000_004,
    "2540400h10m10.000000001s": 2540400 * 3600 * 10**9 + 610 * 10**9 + 1,
    "1.0734406s": 1_073_440_600,
    "7ns": 7,
    "0s": 0,
    "0.5ns": Fraction(1, 2),
    "1.s": 10**9,
}
NO_DURATIONS = [
    "",
    "5",
    "s",
    "-5s",
    "+5s",
    "5 s",
    "1,5ms",
    "5x",
    "5s ",
    " 5s",
    "5S",
    "1e3s",
    "NaN",
    "\u0665s",
    "2562048h",
    "9" * 40 + "s",
]


@pytest.mark.parametrize(("text", "expected"), DURATIONS.items())
def test_durations_are_exact(text, expected):
    assert base.duration_ns(text) == expected


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_duration(text):
    assert base.duration_ns(text) is None


@given(st.integers(0, 10**18))
def test_every_duration_that_go_prints_comes_back(duration_ns):
    assert base.duration_ns(as_go(duration_ns)) == duration_ns


def as_go(duration_ns: int) -> str:
    """Go's Duration.String."""
    for unit, size in (("ns", 1), ("\u00b5s", 1000), ("ms", 10**6)):
        if 0 < duration_ns < size * 1000:
            return f"{decimal(duration_ns, size)}{unit}"
    minutes, rest = divmod(duration_ns, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{decimal(rest, 10**9)}s"
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def decimal(value: int, size: int) -> str:
    decimals = f"{value % size:0{len(str(size)) - 1}}" if size > 1 else ""
    return f"{value // size}.{decimals}".rstrip("0").rstrip(".") if decimals.strip("0") else str(value // size)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.", ".5", "1,5", "1e5", "NaN", "Inf", "1 ", "\u0661", "1_000", "9" * 19]
)
def test_what_is_no_number(text):
    assert base.number(text) is None


def test_numbers_and_their_units():
    assert base.number("100.00%", "%") == 100
    assert base.number("0.1") == Fraction(1, 10)
    assert base.number("46Mi", "Mi") == 46
    assert base.number("46", "Mi") is None
    assert base.number("46m", "Mi") is None


@pytest.mark.parametrize(
    "content",
    [
        "é\n1\n".encode(),
        b"\xef\xbb\xbf" + "é\r\n1\r\n".encode(),
        "\ufeffé\r\n1\r\n".encode("utf-16-le"),
        "é\n1\n".encode("utf-16"),
    ],
)
def test_text_of_every_encoding_that_shells_write(tmp_path, content):
    problems = Problems()
    for name, stored in (("a.txt", content), ("a.txt.zst", rawfiles.compress(content))):
        (tmp_path / name).write_bytes(stored)
        assert stream.read_text(tmp_path / name, problems) == "é\n1\n"
    assert problems.texts() == []


def test_files_with_nothing_to_read(tmp_path):
    path, compressed = tmp_path / "a.txt", tmp_path / "a.txt.zst"
    expected = {"": "is truncated: it is empty", "missing": "is damaged: it cannot be read: No such file or directory"}
    path.write_bytes(b"")
    compressed.write_bytes(rawfiles.compress(b""))
    for file, problem in ((path, ""), (compressed, ""), (tmp_path / "b.txt", "missing")):
        problems = Problems()
        assert stream.read_text(file, problems) is None
        assert problems.texts() == [expected[problem]]


def test_what_was_decompressed_of_a_cut_file_is_kept(tmp_path):
    path, problems = tmp_path / "a.txt.zst", Problems()
    path.write_bytes(rawfiles.compress(b"a figure\n" * 1000)[:-4])
    assert stream.read_text(path, problems).startswith("a figure\n")
    assert problems.texts() == ["is truncated: the compressed data end early"]


def test_a_file_too_large_for_a_report_is_not_read(tmp_path):
    path, problems = tmp_path / "a.txt.zst", Problems()
    path.write_bytes(rawfiles.compress(bytes(stream.LARGEST_BYTES + 1)))
    assert stream.read_text(path, problems) is None
    assert problems.texts() == ["is damaged: it is larger than 16 MiB"]
