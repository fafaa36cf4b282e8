"""Vegeta's JSON lines: what is read of them, and what is corrupt."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loadstone.readers import ANSWERED_SCHEMA, Problems, vegeta_raw
from readers.reading import read, rows
from support import arrow, rawfiles


def parsed(content: bytes) -> tuple[list[dict], Problems]:
    """The rows and problems of these bytes."""
    problems = Problems()
    buffer = bytearray(content if content.endswith(b"\n") else content + b"\n")
    batches = list(vegeta_raw.parse_json(iter([(buffer, len(buffer))]), problems))
    return arrow.rows(pa.Table.from_batches(batches, ANSWERED_SCHEMA)), problems


def expected(line: str) -> dict:
    """What an independent decoder makes of a line."""
    record = json.loads(line)
    return {
        "seq": record["seq"],
        "latency_ns": record["latency"],
        "code": record["code"],
        "error": record["error"],
        "bytes_out": record["bytes_out"],
        "bytes_in": record["bytes_in"],
    }


def without_time(row: dict) -> dict:
    return {name: value for name, value in row.items() if name not in ("sent_at", "answered_by")}


def test_a_real_attack_line_by_line(tmp_path, attack):
    path = tmp_path / "1.results.json"
    path.write_bytes(attack.json)
    found = rows(path)
    assert [without_time(row) for row in found] == [expected(line) for line in attack.json.decode().splitlines()]
    assert any('"' in row["error"] for row in found), "escapes in error texts are decoded"
    for row, line in zip(found, attack.json.decode().splitlines(), strict=True):
        stamp = datetime.fromisoformat(json.loads(line)["timestamp"])
        assert datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row["sent_at"] // 1000) == stamp


def test_times_of_every_shape_in_nanoseconds():
    for sent_ns in (rawfiles.START_NS, rawfiles.START_NS // 10**9 * 10**9, 951_827_696_000_000_100):
        for offset_h in (0, -4, 5):
            found, problems = parsed(rawfiles.line(0, sent_ns=sent_ns, offset_h=offset_h))
            assert (found[0]["sent_at"], problems.texts()) == (sent_ns, [])


def test_any_order_of_keys_and_missing_optional_ones():
    record = json.loads(rawfiles.line(7, 250))
    turned = json.dumps(dict(reversed(record.items())))
    short = json.dumps({name: record[name] for name in ("seq", "code", "timestamp", "latency")})
    found, problems = parsed(f"{turned}\n\n{short}\r\n".encode())
    assert problems.texts() == []
    assert [row["seq"] for row in found] == [7, 7]
    assert found[1]["bytes_in"] == 0
    assert found[1]["error"] == ""


def test_a_last_line_without_its_line_feed_counts(tmp_path):
    path = tmp_path / "1.results.json"
    path.write_bytes(rawfiles.lines([1, 2, 3]).rstrip(b"\n"))
    assert len(rows(path)) == 3


def test_29_february_and_days_that_do_not_exist():
    good = rawfiles.line(0, timestamp="2024-02-29T10:00:00Z")
    bad = [rawfiles.line(0, timestamp=f"{day}T10:00:00Z") for day in ("2023-02-29", "2024-04-31", "2024-13-01")]
    found, problems = parsed(good + b"".join(bad))
    assert (len(found), problems.corrupt_lines) == (1, [2, 3, 4])


CORRUPT = {
    "cut": rawfiles.line(1)[:200] + b"\n",
    "cut in its body": rawfiles.line(1, body="QUJD" * 100)[:400] + b"\n",
    "two merged": rawfiles.line(1, body="QUJD" * 100)[:300] + rawfiles.line(2),
    "no brace": rawfiles.line(1)[:-2] + b"\n",
    "zeros": bytes(300) + b"\n",
    "text": b"hello\n",
    "array": b"[1, 2]\n",
    "null": b"null\n",
    "a missing key": rawfiles.line(1).replace(b'"latency"', b'"latenzy"'),
    "a number as text": rawfiles.line(1).replace(b'"code":200', b'"code":"200"'),
    "a negative latency": rawfiles.line(1, -5),
    "a number too large": rawfiles.line(1).replace(b'"seq":1', b'"seq":' + b"9" * 30),
    "a huge code": rawfiles.line(1, code=2**31),
    "no time": rawfiles.line(1, timestamp="yesterday"),
    "a time without offset": rawfiles.line(1, timestamp="2026-11-21T11:00:00"),
    "no UTF-8": rawfiles.line(1, error="caf@").replace(b"@", b"\xe9"),
    "deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("line", CORRUPT.values(), ids=CORRUPT.keys())
def test_a_corrupt_line_is_counted_and_named_and_the_others_are_read(line):
    found, problems = parsed(rawfiles.line(0) + b"\n" + line + rawfiles.line(5))
    assert [row["seq"] for row in found] == [0, 5]
    assert problems.texts() == ["holds 1 corrupt record (line 3)"]


def test_only_the_first_corrupt_lines_are_named():
    _, problems = parsed(b"x\n" * 9 + rawfiles.line(0))
    assert problems.texts() == ["holds 9 corrupt records (lines 1, 2, 3, 4, 5, ...)"]


@given(st.integers(0, 400), st.integers(0, 400), st.binary(max_size=6))
@example(0, 1, b"")
def test_damage_anywhere_never_crashes_nor_changes_another_record(start, length, inserted):
    intact = rawfiles.line(3, 777, body="QUJD" * 20).rstrip()
    damaged = intact[:start] + inserted.replace(b"\n", b"") + intact[start + length :]
    found, problems = parsed(rawfiles.line(0) + damaged.rstrip(b"\n") + b"\n" + rawfiles.line(9))
    assert (found[0]["seq"], found[-1]["seq"]) == (0, 9)
    middle = found[1:-1]
    assert len(middle) + problems.corrupt_records == (1 if damaged.strip() else 0)
    try:
        oracle = expected(damaged.decode())
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    assert not middle or without_time(middle[0]) == oracle


def test_memory_is_bounded_by_batches_not_by_the_file(tmp_path):
    path = tmp_path / "1.results.json"
    path.write_bytes(rawfiles.lines([5] * 40_000))
    problems = Problems()
    sizes = [batch.num_rows for batch in vegeta_raw.read_json(path, problems)]
    assert sum(sizes) == 40_000
    assert max(sizes) < 25_000


def test_the_table_has_the_rows_of_the_file(tmp_path):
    path = tmp_path / "1.results.json.zst"
    path.write_bytes(rawfiles.compress(rawfiles.lines(range(1, 50_001), rate=1000)))
    table, problems = read(path)
    assert problems.texts() == []
    assert table["seq"].to_pylist() == list(range(50_000))
    assert table["latency_ns"].to_pylist() == list(range(1, 50_001))
