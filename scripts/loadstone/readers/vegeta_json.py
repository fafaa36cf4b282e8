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

from loadstone.readers import answered
from loadstone.readers.base import ANSWERED_SCHEMA, Problems
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
    rb'\{"attack":"(?:generator-([0-9]{1,6})|'
    + _PLAIN
    + rb')","seq":([0-9]{1,18}),"code":([0-9]{1,9}),"timestamp":"('
    + _TIME
    + rb')",'
    rb'"latency":([0-9]{1,18}),"bytes_out":([0-9]{1,18}),"bytes_in":([0-9]{1,18}),"error":"(' + _PLAIN + rb')",'
    rb'"body":"(\x00)?'  # the last group never matches: it keeps a place for who gave the answer
)
_GENERATOR = re.compile(r"generator-([0-9]{1,6})")
_SHARED_SCHEMA = ANSWERED_SCHEMA.append(pa.field("generator", pa.int32()))
_BEHIND_BODY = b',"method":"'
_LEAP_DAY = re.compile(_TIME.replace(rb"(?:0[13-9]|1[0-2])-(?:29|30)", rb"(?:0[1-9]|1[0-2])-(?:29|30)"))

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_CODE = 2  # of the fields that _HEAD finds
_FAILED = 400
_Row = tuple[bytes | None, ...]


class _Line(msgspec.Struct):
    seq: _Count
    code: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    timestamp: str
    latency: Annotated[float, msgspec.Meta(ge=0, lt=1 << 53)]  # exact up to 104 days
    bytes_out: _Count = 0
    bytes_in: _Count = 0
    error: str | None = None
    attack: object = None


_decode = msgspec.json.Decoder(_Line).decode


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ANSWERED_SCHEMA` from ``.json`` or ``.json.zst``, in the file's order (that of completion).

    Where requests name one of several generators, as ``generator-3``, its number is the column ``generator``.
    """
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
                row = head.groups()
                if row[_CODE] >= b"4":  # as text, so perhaps; `_answered` looks closer, at all but most of the body
                    start = buffer[position : min(head.end() + answered.HEAD, behind_body - 1)]
                    row = _answered(row, bytes(start + buffer[behind_body - 1 : line_end]))
                rows.append(row)
                position = line_end + 1
                continue
        line_end = find(b"\n", position, end)
        line = bytes(buffer[position:line_end])
        position = line_end + 1
        decoded = _decode_line(line)
        if decoded is not None:
            rows.append(_answered(decoded, line))
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
    named = _GENERATOR.fullmatch(record.attack) if isinstance(record.attack, str) else None
    return named and named[1].encode(), seq, code, stamp, latency_ns, bytes_out, bytes_in, error, None


def _answered(row: _Row, line: bytes) -> _Row:
    """A row with who gave the answer, when that is no success and the line tells."""
    told = answered.of_line(line) if int(row[_CODE] or 0) >= _FAILED else None
    return (*row[:-1], told.encode()) if told else row


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    names = ("generator", "seq", "code", "sent_at", "latency_ns", "bytes_out", "bytes_in", "error", "answered_by")
    columns = {
        name: pa.array(column, pa.binary()).cast(pa.string())
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    columns["sent_at"] = pc.cast(columns["sent_at"], pa.timestamp("ns", "UTC"))
    # Nearly all runs are of one generator, and name none.
    schema = ANSWERED_SCHEMA if columns["generator"].null_count == len(rows) else _SHARED_SCHEMA
    return pa.RecordBatch.from_arrays([columns[each.name].cast(each.type) for each in schema], schema=schema)
