"""Vegeta's CSV (``vegeta encode --to csv``).

Columns, without a header line: Unix nanoseconds, code, latency, bytes out, bytes in, error, body, attack, seq, and
since v12.8 method, url, headers.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from loadstone.readers import answered
from loadstone.readers.base import ANSWERED_SCHEMA, Problems
from loadstone.readers.stream import LONGEST_LINE_BYTES, TextLines, read_lines

_COLUMNS = (9, 12)
_SENT_AT, _CODE, _LATENCY, _BYTES_OUT, _BYTES_IN, _ERROR, _BODY, _SEQ, _HEADERS = 0, 1, 2, 3, 4, 5, 6, 8, 11
_FAILED = 400
_BATCH_ROWS = 1 << 14
_BATCH_TEXT = 32 << 20
_NUMBER = re.compile(r"[0-9]{1,18}")
_TIME = re.compile(r"[0-9]{1,19}")
_LAST_NS = (1 << 63) - 1

_Row = tuple[int, int, int, int, str, int, int, str | None]


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ANSWERED_SCHEMA` from ``.csv`` or ``.csv.zst``, in the file's order.

    Windows line ends are accepted.
    """
    csv.field_size_limit(LONGEST_LINE_BYTES)
    lines = TextLines(read_lines(path, problems), "surrogateescape")
    records = csv.reader(lines, strict=True)
    rows: list[_Row] = []
    columns = text = 0
    while True:
        try:
            record = next(records, None)
        except csv.Error:
            problems.corrupt(lines.read)
            continue
        if record is None:
            break
        if not record:
            continue
        columns = columns or len(record)
        row = _row(record) if len(record) == columns else None
        if row is None:
            problems.corrupt(lines.read)
            continue
        rows.append(row)
        text += len(row[4])
        if len(rows) >= _BATCH_ROWS or text >= _BATCH_TEXT:
            yield _batch(rows)
            rows, text = [], 0
    if rows:
        yield _batch(rows)


def _row(record: list[str]) -> _Row | None:
    """The fields in the order of `ANSWERED_SCHEMA`, or None when the record is corrupt."""
    if len(record) not in _COLUMNS or _TIME.fullmatch(record[_SENT_AT]) is None:
        return None
    numbers = [record[column] for column in (_SEQ, _LATENCY, _CODE, _BYTES_OUT, _BYTES_IN)]
    if any(_NUMBER.fullmatch(number) is None for number in numbers):
        return None
    sent_at_ns, error = int(record[_SENT_AT]), record[_ERROR]
    seq, latency_ns, code, bytes_out, bytes_in = map(int, numbers)
    if sent_at_ns > _LAST_NS or code >= 1 << 31 or not _is_text(error):
        return None
    told = _answered_by(record) if code >= _FAILED else None
    return seq, sent_at_ns, latency_ns, code, error, bytes_out, bytes_in, told


def _answered_by(record: list[str]) -> str | None:
    body, headers = record[_BODY], record[_HEADERS] if len(record) > _HEADERS else ""
    whole = "surrogateescape"
    return answered.answered_by(
        answered.decoded(body.encode(errors=whole)), answered.decoded(headers.encode(errors=whole), whole=True)
    )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ANSWERED_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWERED_SCHEMA)
