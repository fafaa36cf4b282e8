"""hey's raw output."""

import subprocess
import sys
from pathlib import Path

import loadstone
import pyarrow as pa
import pytest
from loadstone.readers import Problems, hey_csv
from support import arrow, bigfiles, rawfiles

# As hey 0.1.4 wrote it of three workers on loopback.
TEXT = """\
response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0126,0.0024,0.0000,0.0000,0.0101,0.0001,200,0.0416
0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411
0.0128,0.0022,0.0000,0.0001,0.0105,0.0001,200,0.0417
0.0454,0.0000,0.0000,0.0000,0.0039,0.0414,200,0.0625
0.0548,0.0000,0.0000,0.0000,0.0108,0.0440,503,0.1162
"""
ROWS = [(12_600_000, 200, 41_600_000), (13_300_000, 200, 41_100_000), (12_800_000, 200, 41_700_000)]
ROWS += [(45_400_000, 200, 62_500_000), (54_800_000, 503, 116_200_000)]
_CHILD = """
import sys
from pathlib import Path
from loadstone.readers import Problems, hey_csv
problems = Problems()
print(sum(batch.num_rows for batch in hey_csv.read(Path(sys.argv[1]), problems)), problems.texts())
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def read(path: Path, content: str | bytes):
    """All rows of these bytes, and what was wrong with them."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    problems = Problems()
    batches = list(hey_csv.read(path, problems))
    assert all(batch.schema == hey_csv.HEY_SCHEMA for batch in batches)
    return arrow.rows(pa.Table.from_batches(batches, hey_csv.HEY_SCHEMA)), problems.texts()


def figures(rows: list[dict]) -> list[tuple]:
    return [(row["latency_ns"], row["code"], row["offset_ns"]) for row in rows]


def test_every_request_exactly(tmp_path) -> None:
    found, problems = read(tmp_path / "1.hey.csv", TEXT)
    assert problems == []
    assert figures(found) == ROWS
    assert found[4] == {
        "seq": 4,
        "sent_at": None,
        "latency_ns": 54_800_000,
        "code": 503,
        "error": "",
        "bytes_out": None,
        "bytes_in": None,
        "offset_ns": 116_200_000,
    }


@pytest.mark.parametrize(
    "content",
    [
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.rstrip().encode(),
        TEXT.replace("\n", "\n\n").encode(),
        (TEXT + "\n\n").encode(),
    ],
    ids=["windows", "mark", "no last line end", "empty lines", "empty lines at the end"],
)
def test_other_line_ends(tmp_path, content) -> None:
    found, problems = read(tmp_path / "1.hey.csv", content)
    assert (figures(found), problems) == (ROWS, [])
    assert read(tmp_path / "1.hey.csv.zst", rawfiles.compress(content)) == (found, [])


def test_hey_before_0_1_2_tells_neither_code_nor_start(tmp_path) -> None:
    text = "".join(",".join(line.split(",")[:6]) + "\n" for line in TEXT.splitlines())
    found, problems = read(tmp_path / "1.hey.csv", text)
    assert problems == []
    assert figures(found) == [(latency_ns, None, None) for latency_ns, _, _ in ROWS]


def test_a_run_in_which_every_request_failed_is_a_header(tmp_path) -> None:
    assert read(tmp_path / "1.hey.csv", TEXT.splitlines(keepends=True)[0]) == ([], [])


@pytest.mark.parametrize(
    "row",
    [
        "0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200",
        "0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.04",
        "0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411,1",
        "0,0133,0,0002,0,0000,0,0001,0,0129,0,0000,200,0,0411",
        "-0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411",
        "NaN,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411",
        "9999999999.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411",
        "0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,2000,0.0411",
        "0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.\x00411",
        '"0.0133",0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411',
        "<script>",
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
    ],
)
def test_a_corrupt_row_is_counted_and_the_others_keep_their_numbers(tmp_path, row) -> None:
    lines = TEXT.splitlines()
    lines[2] = row
    found, problems = read(tmp_path / "1.hey.csv", "\n".join(lines) + "\n")
    assert problems == ["holds 1 corrupt record (line 3)"]
    assert [row["seq"] for row in found] == [0, 2, 3, 4]


def test_the_largest_times_fit(tmp_path) -> None:
    row = "999999999.9999,-0.0002,0.0000,0.0001,0.0129,0.0000,999,999999999.9999\n"
    found, problems = read(tmp_path / "1.hey.csv", TEXT.splitlines(keepends=True)[0] + row)
    assert (figures(found), problems) == ([(999_999_999_999_900_000, 999, 999_999_999_999_900_000)], [])


@pytest.mark.parametrize(
    "content",
    [b"hello\n", b"\x00" * 99, b"[]", TEXT.replace("offset", "start").encode(), TEXT[5:].encode(), b"x" * 4096],
)
def test_what_is_no_output_of_hey(tmp_path, content) -> None:
    assert read(tmp_path / "1.hey.csv", content) == ([], ["is damaged: its first line is not the header of hey -o csv"])


def test_cut_anywhere_it_gives_only_rows_of_the_whole(tmp_path) -> None:
    path = tmp_path / "1.hey.csv"
    header = TEXT.index("\n")
    for end in range(len(TEXT)):
        found, problems = read(path, TEXT[:end])
        assert figures(found) == ROWS[: len(found)], end
        # hey's lines begin with their line feed, so one that lacks only that is whole; and so is an old header.
        is_whole = end >= header and "\n" in TEXT[end - 1 : end + 1]
        assert bool(problems) == (not is_whole and not TEXT[:end].endswith("Response-read")), end


def test_rows_in_the_right_order_over_many_chunks(tmp_path) -> None:
    count = 100_000
    rows = "".join(
        f"{seq // 10000}.{seq % 10000:04},0.0000,0.0000,0.0000,0.0000,0.0000,200,1.0000\n" for seq in range(count)
    )
    found, problems = read(tmp_path / "1.hey.csv", TEXT.splitlines(keepends=True)[0] + rows + "x\n")
    assert problems == [f"holds 1 corrupt record (line {count + 2})"]
    assert [row["seq"] for row in found] == list(range(count))
    assert [row["latency_ns"] for row in found] == [seq * 100_000 for seq in range(count)]


def test_memory_does_not_follow_the_size_of_a_file(tmp_path) -> None:
    path = tmp_path / "1.hey.csv.zst"
    header, *lines = TEXT.splitlines(keepends=True)
    block = "".join(lines * 20_000).encode()
    times = (96 << 20) // len(block)
    bigfiles.write_repeated(path, block, times)
    path.write_bytes(rawfiles.compress(header.encode()) + path.read_bytes())
    environment = {"PYTHONPATH": str(Path(loadstone.__file__).parents[1])}
    command = [sys.executable, "-c", _CHILD, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    told, peak_kib = done.stdout.splitlines()
    assert told == f"{100_000 * times} []"
    assert int(peak_kib) < 200 << 10  # an empty file takes 130 MiB
