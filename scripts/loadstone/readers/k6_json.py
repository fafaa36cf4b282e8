"""k6's raw output as JSON lines (``k6 run --out json=FILE``): nine and more points of every request, one a line.

Only the lines that name `DURATION` are decoded; all others are looked at from outside, which is many times faster.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from loadstone.readers.base import Problems
from loadstone.readers.k6_points import DURATION, REQUESTS, Rows, Tags, compare, instant_ns
from loadstone.readers.stream import read_lines

_NAME = f'"{DURATION}"'.encode()
_POINT = b'"type":"Point"'
_COUNTED = f'{{"metric":"{REQUESTS}",'.encode() + _POINT  # as since 0.40; before, the name stood last
_LINE_FEED, _CARRIAGE_RETURN, _OPEN, _CLOSE = b"\n\r{}"


class _Kind(msgspec.Struct):
    type: str


class _TagSet(msgspec.Struct):
    status: str = ""
    error: str = ""
    error_code: str = ""
    scenario: str = ""
    group: str = ""


class _Data(msgspec.Struct):
    time: str
    value: float
    tags: _TagSet | None = None


class _Line(msgspec.Struct):
    type: str
    metric: str
    data: _Data


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `loadstone.readers.k6_points.K6_SCHEMA` from ``.k6.json``, plain or ``.zst``, in the file's order."""
    rows = Rows()
    lines = points = counted = 0
    for buffer, end in read_lines(path, problems):
        lines += _read_chunk(buffer, end, rows, lines, problems)
        points += buffer.count(_POINT, 0, end)
        counted += buffer.count(_COUNTED, 0, end)
        if rows.full:
            yield rows.batch()
    if len(rows):
        yield rows.batch()
    if lines and not points and not rows.seq:
        problems.damaged = problems.damaged or "it is no JSON output of k6"
    compare(counted, rows.seq, problems)


def _read_chunk(buffer: bytearray, end: int, rows: Rows, lines_before: int, problems: Problems) -> int:
    """Add the requests of ``buffer[:end]``; returns how many lines it holds."""
    line_feeds, suspects = _outline(buffer, end)
    corrupt = {start for start, stop in suspects if not _is_object(bytes(buffer[start:stop]))}
    position = buffer.find(_NAME, 0, end)
    while position >= 0:
        start = buffer.rfind(b"\n", 0, position) + 1
        stop = buffer.find(b"\n", position, end)
        if not _read_line(bytes(buffer[start:stop]), rows):
            corrupt.add(start)
        position = buffer.find(_NAME, stop, end)
    for start in sorted(corrupt):
        problems.corrupt(lines_before + 1 + int(np.searchsorted(line_feeds, start)))
    return len(line_feeds)


def _outline(buffer: bytearray, end: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Where the lines end, and the begin and end of those that are not from one brace to another."""
    content = np.frombuffer(buffer, np.uint8, end)
    line_feeds = np.flatnonzero(content == _LINE_FEED)
    starts = np.concatenate(([0], line_feeds[:-1] + 1))
    last = content[np.maximum(line_feeds - 1, starts)]
    last = np.where(last == _CARRIAGE_RETURN, content[np.maximum(line_feeds - 2, starts)], last)
    odd = np.flatnonzero((content[starts] != _OPEN) | (last != _CLOSE))
    return line_feeds, [(int(starts[line]), int(line_feeds[line])) for line in odd]


def _is_object(line: bytes) -> bool:
    """Whether a line that looks odd is fine, or empty."""
    try:
        return not line.strip() or isinstance(_decode_any(line), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _read_line(line: bytes, rows: Rows) -> bool:
    """Add the request of a line that names `DURATION` somewhere; False when it is corrupt."""
    try:
        if _decode_kind(line).type == "Metric":
            return True
        point = _decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    if point.type != "Point" or point.metric != DURATION:
        return True
    tags = point.data.tags or _TagSet()
    return rows.add(
        instant_ns(point.data.time),
        point.data.value,
        Tags(tags.status, tags.error, tags.error_code, tags.scenario, tags.group),
    )
