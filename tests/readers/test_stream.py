"""Every way in which the bytes of a file can end early or be wrong."""

import os

import pytest
from loadstone.readers import stream
from readers.reading import read, rows
from support import rawfiles

LINES = rawfiles.lines([1_000_000] * 20)


def test_frames_are_read_one_after_another(tmp_path):
    path = tmp_path / "1.results.json.zst"
    path.write_bytes(rawfiles.compress(LINES[:333]) + rawfiles.compress(b"") + rawfiles.compress(LINES[333:]))
    assert [row["seq"] for row in rows(path)] == list(range(20))


def test_truncated_at_every_byte_of_the_last_frame(tmp_path):
    first, last = rawfiles.compress(LINES), rawfiles.compress(rawfiles.lines([2_000_000] * 20))
    path = tmp_path / "1.results.json.zst"
    for kept in range(1, len(last)):
        path.write_bytes(first + last[:kept])
        table, problems = read(path)
        assert problems.truncated == "the compressed data end early", kept
        assert table.num_rows >= 20, "what came before is kept"
        path.write_bytes(last[:kept])
        assert read(path)[1].truncated, kept


def test_every_changed_byte_is_noticed(tmp_path):
    content = rawfiles.compress(LINES)
    path = tmp_path / "1.results.json.zst"
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        assert read(path)[1].texts(), position


@pytest.mark.parametrize("suffix", ["json", "json.zst", "csv", "csv.zst", "bin", "bin.zst"])
def test_an_empty_file_is_truncated(tmp_path, suffix):
    path = tmp_path / f"1.results.{suffix}"
    path.touch()
    table, problems = read(path)
    assert (table.num_rows, problems.texts()) == (0, ["is truncated: it is empty"])


@pytest.mark.parametrize("suffix", ["json.zst", "csv.zst", "bin", "bin.zst"])
def test_foreign_bytes_are_damage(tmp_path, suffix):
    path = tmp_path / f"1.results.{suffix}"
    path.write_bytes(b"PK\x03\x04 this is something else " * 50)
    table, problems = read(path)
    assert table.num_rows == 0
    assert problems.damaged


def test_bytes_behind_the_last_frame_are_damage(tmp_path):
    path = tmp_path / "1.results.json.zst"
    path.write_bytes(rawfiles.compress(LINES) + b"and more")
    table, problems = read(path)
    assert (table.num_rows, bool(problems.damaged)) == (20, True)


@pytest.mark.parametrize("suffix", ["json", "json.zst", "csv", "bin"])
def test_what_can_not_be_opened_is_named_and_never_waited_for(tmp_path, suffix):
    path = tmp_path / f"1.results.{suffix}"
    assert read(path)[1].texts() == ["is damaged: it cannot be read: No such file or directory"]
    os.mkfifo(path)
    assert read(path)[1].texts() == ["is damaged: it is not a regular file"]
    path.unlink()
    path.mkdir()
    assert read(path)[1].texts() == ["is damaged: it is not a regular file"]


def test_lines_longer_than_a_chunk(tmp_path):
    bodies = ["x" * size for size in (1, 3 << 20, 1 << 20, (1 << 20) - 300, 5)]
    path = tmp_path / "1.results.json"
    path.write_bytes(b"".join(rawfiles.line(seq, body=body) for seq, body in enumerate(bodies)))
    assert [row["seq"] for row in rows(path)] == [0, 1, 2, 3, 4]


def test_a_line_without_an_end_stops_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_LINE_BYTES", 4 << 20)
    path = tmp_path / "1.results.json"
    path.write_bytes(LINES + b"x" * (20 << 20))
    table, problems = read(path)
    assert (table.num_rows, problems.damaged) == (20, "it holds a line of more than 4 MiB")
