"""hey's raw output (``hey -o csv``): a line per request that got an answer, in the order in which they ended.

Times are in seconds with four decimals: the resolution is 0.1 ms (`RESOLUTION_NS`). ``response-time`` is from before
the connection is asked for to the end of the body; ``offset``, the start since hey's own, stands for the absolute time
that hey does not write. hey 0.1.1 and before write neither ``status-code`` nor ``offset``; both are then null. Bytes
are never known. (hey's source, requester/requester.go and report.go.)

What is not in the file, and leaves no trace in it:

- a request that failed without an answer (refused, reset, timed out). A run in which all failed is a header only.
- all behind the first `MOST_ROWS` answers.
- requests that were never sent: ``-c`` workers send ``n // c`` each, the rest of the division is dropped.

So what is missing shows only by comparing rows with ``n // c * c``, where the declaration says it, or with rate x
duration.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from loadstone.readers.base import SCHEMA, Format, Problems, batch_of
from loadstone.readers.stream import read_lines

RESOLUTION_NS = 100_000
MOST_ROWS = 1_000_000

# `SCHEMA` and where in the run a request was sent: nanoseconds since hey was started.
HEY_SCHEMA = SCHEMA.append(pa.field("offset_ns", pa.int64()))

_HEADER = b"response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"
_HEADERS = {_HEADER: False, _HEADER + b",status-code,offset": True}

_SECONDS = rb"([0-9]{1,9}\.[0-9]{4})"
_PARTS = rb"(?:,-?[0-9]{1,9}\.[0-9]{4}){5}"
_LONG = re.compile(rb"^" + _SECONDS + _PARTS + rb",([0-9]{3})," + _SECONDS + rb"\r?$", re.MULTILINE)
_SHORT = re.compile(rb"^" + _SECONDS + _PARTS + rb"()()\r?$", re.MULTILINE)

_Row = tuple[int, bytes, bytes, bytes]


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `HEY_SCHEMA` from ``.csv`` or ``.csv.zst``; `sent_at` is null, `seq` counts the file's records."""
    pattern: re.Pattern[bytes] | None = None
    lines = seq = 0
    for buffer, end in read_lines(path, problems):
        chunk = bytes(buffer[:end])
        if pattern is None:
            header, _, chunk = chunk.partition(b"\n")
            has_codes = _HEADERS.get(header.removeprefix(b"\xef\xbb\xbf").rstrip())
            if has_codes is None:
                problems.damaged = problems.damaged or "its first line is not that of hey -o csv"
                return
            pattern, lines = _LONG if has_codes else _SHORT, 1
        rows, records = _rows(chunk, pattern, lines, seq, problems)
        lines += chunk.count(b"\n")
        seq += records
        if rows:
            yield _batch(rows)


def _rows(chunk: bytes, pattern: re.Pattern[bytes], lines: int, seq: int, problems: Problems) -> tuple[list[_Row], int]:
    """The rows of whole lines, and how many records there are, corrupt ones counted too."""
    found = pattern.findall(chunk)
    if len(found) == chunk.count(b"\n"):
        return [(number, *fields) for number, fields in enumerate(found, seq)], len(found)
    rows: list[_Row] = []
    records = 0
    for line, content in enumerate(chunk.split(b"\n")[:-1], lines + 1):
        if not content.strip():
            continue
        match = pattern.fullmatch(content)
        if match is None:
            problems.corrupt(line)
        else:
            rows.append((seq + records, match[1], match[2], match[3]))
        records += 1
    return rows, records


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    seq, latency, code, offset = zip(*rows, strict=True)
    columns = {
        "seq": seq,
        "latency_ns": _nanoseconds(latency),
        "code": _numbers(code),
        "error": pa.repeat("", len(rows)),
        "offset_ns": _nanoseconds(offset),
    }
    return batch_of(columns, HEY_SCHEMA)


def _nanoseconds(seconds: tuple[bytes, ...]) -> pa.Array:
    """Exactly: the digits without their point are tenths of milliseconds."""
    return pc.multiply(_numbers(tuple(text.replace(b".", b"") for text in seconds)), RESOLUTION_NS)


def _numbers(texts: tuple[bytes, ...]) -> pa.Array:
    """Whole numbers; an empty text is null."""
    return pa.array([text or None for text in texts], pa.binary()).cast(pa.string()).cast(pa.int64())


FORMATS = {
    "hey.csv": Format("hey", requests=read, resolution_ns=RESOLUTION_NS, begins=rb"response-time,DNS\+dialup,"),
}
