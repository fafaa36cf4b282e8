"""Vegeta's JSON lines (``vegeta encode --to json``), also as the predecessor's serial mode wrote them.

The only module that knows this line format. Nearly every line is read by a regular expression over the fields before
``body``, in the order in which vegeta writes them, and a look at what follows the body; any line of another form is
decoded as JSON. That is several times faster than decoding megabytes of bodies that nobody needs.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.readers.base import SCHEMA, Problems
from loadstone.readers.stream import read_lines

_BATCH_ROWS = 1 << 14
_BATCH_INPUT_BYTES = 32 << 20  # bounds a batch whose records are all long

# RFC 3339 with 0 to 9 decimals, within the years that nanoseconds can express. The days are those that every such
# month has, so that a time that matches converts for certain (29 February takes the other path).
_TIME = (
    rb"(?:19|20|21)[0-9]{2}-"
    rb"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    rb"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_PLAIN = rb"[ !#-\[\]-~]*"  # ASCII without quote and backslash: text that JSON writes as it is
_HEAD = re.compile(
    rb'\{"attack":"' + _PLAIN + rb'","seq":([0-9]{1,18}),"code":([0-9]{1,9}),"timestamp":"(' + _TIME + rb')",'
    rb'"latency":([0-9]{1,18}),"bytes_out":([0-9]{1,18}),"bytes_in":([0-9]{1,18}),"error":"(' + _PLAIN + rb')",'
    rb'"body":"'
)
_BEHIND_BODY = b',"method":"'
_LEAP_DAY = re.compile(_TIME.replace(rb"(?:0[13-9]|1[0-2])-(?:29|30)", rb"(?:0[1-9]|1[0-2])-(?:29|30)"))

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Row = tuple[bytes, ...]


class _Line(msgspec.Struct):
    seq: _Count
    code: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    timestamp: str
    latency: Annotated[float, msgspec.Meta(ge=0, lt=1 << 53)]  # exact up to 104 days
    bytes_out: _Count = 0
    bytes_in: _Count = 0
    error: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `SCHEMA` from ``.json`` or ``.json.zst``, in the file's order (that of completion)."""
    return parse(read_lines(path, problems), problems)


def parse(chunks: Iterator[tuple[bytearray, int]], problems: Problems) -> Iterator[pa.RecordBatch]:
    """The same from chunks of whole lines as `loadstone.readers.stream.whole_lines` yields them."""
    rows: list[_Row] = []
    lines, consumed_bytes = 0, 0
    for buffer, end in chunks:
        lines += _parse_chunk(buffer, end, rows, lines, problems)
        consumed_bytes += end
        if len(rows) >= _BATCH_ROWS or consumed_bytes >= _BATCH_INPUT_BYTES:
            yield _batch(rows)
            rows, consumed_bytes = [], 0
    if rows:
        yield _batch(rows)


def _parse_chunk(buffer: bytearray, end: int, rows: list[_Row], lines_before: int, problems: Problems) -> int:
    """Append the rows of ``buffer[:end]``; returns how many lines it holds."""
    match, find, starts_with = _HEAD.match, buffer.find, buffer.startswith
    position, others, rows_before = 0, 0, len(rows)
    while position < end:
        head = match(buffer, position)
        if head is not None:
            # -1 (no quote) gives 0, where the chunk's first line starts: with a brace, not with what follows a body.
            behind_body = find(b'"', head.end(), end) + 1
            line_end = find(b"\n", behind_body, end)
            if starts_with(_BEHIND_BODY, behind_body) and starts_with(b"}}", line_end - 2):
                rows.append(head.groups())
                position = line_end + 1
                continue
        line_end = find(b"\n", position, end)
        line = bytes(buffer[position:line_end])
        position = line_end + 1
        row = _decode_line(line)
        if row is not None:
            rows.append(row)
            continue
        others += 1
        if line.strip():
            problems.corrupt(lines_before + len(rows) - rows_before + others)
    return len(rows) - rows_before + others


def _decode_line(line: bytes) -> _Row | None:
    """The fields of any JSON object with vegeta's keys as texts in the order of `SCHEMA`'s regex; None if corrupt."""
    try:
        record = _decode(line)
        stamp = record.timestamp.encode()
        if _LEAP_DAY.fullmatch(stamp) is None:
            return None
        datetime.fromisoformat(record.timestamp)
        error = (record.error or "").encode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    numbers = (record.seq, record.code, round(record.latency), record.bytes_out, record.bytes_in)
    seq, code, latency_ns, bytes_out, bytes_in = (str(number).encode() for number in numbers)
    return seq, code, stamp, latency_ns, bytes_out, bytes_in, error


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = dict(
        zip(
            ("seq", "code", "sent_at", "latency_ns", "bytes_out", "bytes_in", "error"),
            (pa.array(column, pa.binary()).cast(pa.string()) for column in zip(*rows, strict=True)),
            strict=True,
        )
    )
    columns["sent_at"] = pc.cast(columns["sent_at"], pa.timestamp("ns", "UTC"))
    return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)
