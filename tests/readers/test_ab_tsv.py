"""ApacheBench's data for gnuplot."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from loadstone.readers import Problems, ab_tsv
from support import arrow, rawfiles

HEADER = "starttime\tseconds\tctime\tdtime\tttime\twait\n"
# As ab 2.3 wrote it of four connections on loopback.
TEXT = (
    HEADER
    + """\
Wed Nov 25 03:20:35 2026	1795576835	0	3	3	2
Wed Nov 25 03:20:36 2026	1795576836	0	4	4	4
Wed Nov 25 03:20:35 2026	1795576835	1	4	5	4
Wed Nov 25 03:20:38 2026	1795576838	0	90	90	90
Wed Nov 25 03:20:36 2026	1795576836	0	91	91	91
"""
)
LATENCIES_MS = [3, 4, 5, 90, 91]


def read(path: Path, content: str | bytes):
    """All rows of these bytes, and what was wrong with them."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    problems = Problems()
    batches = list(ab_tsv.read(path, problems))
    return arrow.rows(pa.Table.from_batches(batches, ab_tsv.SCHEMA)), problems.texts()


def latencies_ms(rows: list[dict]) -> list[float]:
    return [row["latency_ns"] / 1e6 for row in rows]


def file(requests: list[tuple[int, int]]) -> str:
    """A file of (second, latency in ms), sorted as ab sorts it."""
    rows = sorted(requests, key=lambda request: request[1])
    return HEADER + "".join(f"Wed Nov 25 03:20:35 2026\t{at}\t0\t{ms}\t{ms}\t{ms}\n" for at, ms in rows)


def test_every_request_exactly(tmp_path) -> None:
    found, problems = read(tmp_path / "1.ab.tsv", TEXT)
    assert problems == []
    assert latencies_ms(found) == LATENCIES_MS
    unknown = dict.fromkeys(("sent_at", "code", "bytes_out", "bytes_in"))
    assert found[3] == {"seq": 4, "latency_ns": 90_000_000, "error": ""} | unknown


@pytest.mark.parametrize(
    "content",
    [TEXT.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + TEXT.encode(), TEXT.rstrip().encode(), TEXT + "\n\n"],
    ids=["windows", "mark", "no last line end", "empty lines at the end"],
)
def test_other_line_ends(tmp_path, content) -> None:
    expected = read(tmp_path / "1.ab.tsv", TEXT)
    assert read(tmp_path / "1.ab.tsv", content) == expected
    whole = content.encode() if isinstance(content, str) else content
    assert read(tmp_path / "1.ab.tsv.zst", rawfiles.compress(whole)) == expected


def test_numbers_follow_the_seconds_and_not_the_latency(tmp_path) -> None:
    rng = np.random.default_rng(1)
    requests = [(1_795_576_835 + second, int(rng.integers(1, 1000))) for second in range(60) for _ in range(200)]
    found, problems = read(tmp_path / "1.ab.tsv", file(requests))
    assert problems == []
    assert sorted(row["seq"] for row in found) == list(range(len(requests)))
    found.sort(key=lambda row: row["seq"])
    assert [row["sent_at"] for row in found] == sorted(row["sent_at"] for row in found)
    taken = np.array(latencies_ms(found))
    assert abs(np.corrcoef(taken[:-1], taken[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(taken[:-200], taken[200:])[0, 1]) < 0.05


def test_the_numbers_are_the_same_each_time(tmp_path) -> None:
    assert read(tmp_path / "1.ab.tsv", TEXT) == read(tmp_path / "2.ab.tsv", TEXT)


@pytest.mark.parametrize(("seconds", "dated"), [(ab_tsv.LEAST_SECONDS - 1, False), (ab_tsv.LEAST_SECONDS, True)])
def test_a_short_run_has_no_times(tmp_path, seconds, dated) -> None:
    found, _ = read(tmp_path / "1.ab.tsv", file([(1_795_576_835, 7), (1_795_576_835 + seconds, 8)]))
    assert [row["sent_at"] is not None for row in found] == [dated, dated]


def test_the_start_is_in_utc(tmp_path) -> None:
    found, _ = read(tmp_path / "1.ab.tsv", file([(1_795_576_835, 7), (1_795_577_835, 8)]))
    assert [row["sent_at"] for row in found] == [1_795_576_835 * 10**9, 1_795_577_835 * 10**9]  # 03:20:35 UTC


@pytest.mark.parametrize(
    "row",
    [
        "Wed Nov 25 03:20:36 2026\t1795576836\t0\t4\t4",
        "Wed Nov 25 03:20:36 2026\t1795576836\t0\t4\t4\t4\t4",
        "Wed Nov 25 03:20:36 2026\t1795576836\t0\t4\t4.5\t4",
        "Wed Nov 25 03:20:36 2026\t1795576836\t0\t4\t-4\t4",
        "Wed Nov 25 03:20:36 2026\t99999999999\t0\t4\t4\t4",
        "25.11.2026 03:20:36\t1795576836\t0\t4\t4\t4",
        "Wed Nov 25 03:20:36 2026 1795576836 0 4 4 4",
        HEADER.rstrip(),
    ],
)
def test_a_corrupt_row_is_counted_and_the_others_are_read(tmp_path, row) -> None:
    lines = TEXT.splitlines()
    lines[2] = row
    found, problems = read(tmp_path / "1.ab.tsv", "\n".join(lines) + "\n")
    assert problems == ["holds 1 corrupt record (line 3)"]
    assert latencies_ms(found) == [3, 5, 90, 91]
    assert sorted(row["seq"] for row in found) == [0, 1, 2, 3]


@pytest.mark.parametrize("content", [b"hello\n", b"\x00" * 99, TEXT.replace("wait", "waits"), TEXT[5:], TEXT[:20]])
def test_what_is_no_output_of_ab(tmp_path, content) -> None:
    assert read(tmp_path / "1.ab.tsv", content) == ([], ["is damaged: its first line is not that of ab -g"])
