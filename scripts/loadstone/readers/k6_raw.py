"""k6's raw outputs: JSON lines (``k6 run --out json=FILE``) and CSV (``k6 run --out csv=FILE``).

Both have nine and more points of every request; one of ``http_req_duration`` is a request, as is one of
``grpc_req_duration`` (a gRPC call, whose status is its code) or ``ws_session_duration`` (a WebSocket session). k6
stamps all points of a request when it has ended (EndTime, lib/netext/httpext/tracer.go), so `sent_at` is that time less
the latency. The latency is k6's own: sending, waiting and receiving the whole body, without waiting for a connection,
connecting and TLS handshake. k6 counts bytes per iteration only; per request they are null.

Only JSON lines that name one of `DURATIONS` are decoded; of all others only the first and last characters are checked,
which is many times faster. In the CSV times are in whole seconds unless K6_CSV_TIME_FORMAT asked for more. A request's
start is then known to the second only: `sent_at` may be up to `csv_report`'s ``clock_resolution_ns`` earlier than it
was.
"""

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from loadstone.readers.base import BODY, LAST_NS, NS_PER_MS, SCHEMA, Format, Generator, Problems, Report, batches
from loadstone.readers.stream import csv_records, read_lines, text_lines

DURATION, _GRPC, WEBSOCKET = "http_req_duration", "grpc_req_duration", "ws_session_duration"
DURATIONS = (DURATION, _GRPC, WEBSOCKET)
REQUESTS = "http_reqs"
_OK = {_GRPC: 0, WEBSOCKET: HTTPStatus.SWITCHING_PROTOCOLS}

# `ok`: the code means success, other than in HTTP: status 0 of gRPC, 101 of a WebSocket session.
K6_SCHEMA = SCHEMA.append(pa.field("phase", pa.string())).append(pa.field("ok", pa.bool_()))
_COLUMNS = ("seq", "sent_at", "latency_ns", "code", "error", "phase", "ok")

# k6 runs these functions of a script once, before and after all scenarios.
_OUTSIDE = ("setup", "teardown")

_STATUS = re.compile(r"[0-9]{1,9}")
_TIME = re.compile(
    r"((?:19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})"
)


# https://grpc.io/docs/guides/status-codes/
_STATUSES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


class _Tags(msgspec.Struct):
    """The tags of a point that matter here; those that are absent are empty."""

    status: str = ""
    error: str = ""
    error_code: str = ""
    scenario: str = ""
    group: str = ""


def _row(seq: int, ended_ns: int | None, value_ms: float, tags: _Tags, metric: str) -> tuple[Any, ...]:
    """A request in the order of `_COLUMNS`. `seq` counts them in the file's order, that of ends. Raises ValueError."""
    if ended_ns is None or not math.isfinite(value_ms) or not 0 <= value_ms * NS_PER_MS <= ended_ns <= LAST_NS:
        raise ValueError
    if tags.status and _STATUS.fullmatch(tags.status) is None:
        raise ValueError
    # A status from 400 on sets error_code too (1000 more), without a text: the status says it better.
    code = int(tags.status) if tags.status else None
    error = tags.error or (f"error_code {tags.error_code}" if tags.error_code and not code else "")
    latency_ns = round(value_ms * NS_PER_MS)
    if metric == _GRPC and code:
        error = error or f"gRPC status {' '.join([str(code), *_STATUSES[code : code + 1]])}"
    return seq, ended_ns - latency_ns, latency_ns, code, error, _phase(tags), metric in _OK and code == _OK[metric]


def _phase(tags: _Tags) -> str | None:
    """The scenario; ``setup`` or ``teardown``, which are of none; None of a k6 that has no scenarios."""
    if tags.scenario:
        return tags.scenario
    name = tags.group.removeprefix("::").partition("::")[0]
    return name if name in _OUTSIDE else None


def _check_counts(counted: int, measured: int, problems: Problems) -> None:
    """Every request is counted by one point and measured by another: report when points are missing."""
    if counted and counted != measured and not problems.texts():
        problems.damaged = f"it counts {counted} requests and holds the durations of {measured}"


def _instant_ns(text: str) -> int | None:
    """A time as Go writes it (RFC 3339 with up to nine decimals) in nanoseconds since 1970."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    second = _second(match[1] + match[3])
    return None if second is None else second * 1_000_000_000 + int((match[2] or "").ljust(9, "0"))


@lru_cache(maxsize=16)
def _second(text: str) -> int | None:
    try:
        return round(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


# --- JSON -------------------------------------------------------------------------------------------------------------

_NAME = f'"{DURATION}"'.encode()
_OTHER_NAMES = tuple(f'"{name}"'.encode() for name in DURATIONS[1:])
_ANY_NAME = re.compile(b"|".join((_NAME, *_OTHER_NAMES)))
_POINT = b'"type":"Point"'
_COUNTED = f'{{"metric":"{REQUESTS}",'.encode() + _POINT  # as since 0.40; before, the name stood last
_LINE_FEED, _CARRIAGE_RETURN, _OPEN, _CLOSE = b"\n\r{}"


class _Kind(msgspec.Struct):
    type: str


class _Data(msgspec.Struct):
    time: str
    value: float
    tags: _Tags | None = None


class _Line(msgspec.Struct):
    type: str
    metric: str
    data: _Data


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode
_CORRUPT = (msgspec.DecodeError, ValueError, RecursionError)


def read_json(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `K6_SCHEMA` from ``.k6.json``, plain or ``.zst``, in the file's order."""
    return batches(_json_rows(path, problems), _COLUMNS, K6_SCHEMA)


def _json_rows(path: Path, problems: Problems) -> Iterator[tuple[Any, ...]]:
    seq = lines = points = counted = http = 0
    for buffer, end in read_lines(path, problems):
        line_feeds, suspects = _outline(buffer, end)
        corrupt = {start for start, stop in suspects if not _is_object(bytes(buffer[start:stop]))}
        find = _finder(buffer, end)
        position = find(0)
        while position >= 0:
            start = buffer.rfind(b"\n", 0, position) + 1
            stop = buffer.find(b"\n", position, end)
            try:
                row = _json_row(bytes(buffer[start:stop]), seq)
            except _CORRUPT:
                corrupt.add(start)
            else:
                if row is not None:
                    yield row
                    seq += 1
                    http += buffer.startswith(_NAME, position)
            position = find(stop)
        for start in sorted(corrupt):
            problems.corrupt(lines + 1 + int(np.searchsorted(line_feeds, start)))
        lines += len(line_feeds)
        points += buffer.count(_POINT, 0, end)
        counted += buffer.count(_COUNTED, 0, end)
    if lines and not points and not seq:
        problems.damaged = problems.damaged or "it is not valid k6 JSON output"
    _check_counts(counted, http, problems)


def _finder(buffer: bytearray, end: int) -> Callable[[int], int]:
    """A function that finds the next name of `DURATIONS` from a position on, -1 for none; most files have only one."""
    if not any(name in buffer for name in _OTHER_NAMES):
        return lambda start: buffer.find(_NAME, start, end)

    def find(start: int) -> int:
        found = _ANY_NAME.search(buffer, start, end)
        return found.start() if found else -1

    return find


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
    """Whether a line that does not begin and end with a brace is an object all the same, or blank."""
    try:
        return not line.strip() or isinstance(_decode_any(line), dict)
    except _CORRUPT:
        return False


def _json_row(line: bytes, seq: int) -> tuple[Any, ...] | None:
    """The request of a line that names one of `DURATIONS`, None when it is of none. Raises one of `_CORRUPT`."""
    if _decode_kind(line).type == "Metric":
        return None
    point = _decode(line)
    if point.type != "Point" or point.metric not in DURATIONS:
        return None
    return _row(seq, _instant_ns(point.data.time), point.data.value, point.data.tags or _Tags(), point.metric)


# --- CSV --------------------------------------------------------------------------------------------------------------

_BEGIN = ["metric_name", "timestamp", "metric_value"]
_VALUE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_LINES_WITH_TIME = 10_000  # lines in which a time is looked for

# The digits of a Unix time show what it counts; these ranges are of 1973 to 2262.
_UNITS_NS = {9: 10**9, 10: 10**9, 12: 10**6, 13: 10**6, 15: 1000, 16: 1000, 18: 1, 19: 1}


def read_csv(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `K6_SCHEMA` from ``.k6.csv``, plain or ``.zst``, in the file's order."""
    return batches(_csv_rows(path, problems), _COLUMNS, K6_SCHEMA)


def _csv_rows(path: Path, problems: Problems) -> Iterator[tuple[Any, ...]]:
    seq = counted = http = 0
    for line, record, columns in _records(path, problems):
        if record[0] == REQUESTS:
            counted += 1
        elif record[0] in DURATIONS:
            try:
                row = _csv_row(record, columns, seq)
            except ValueError:
                problems.corrupt(line)
            else:
                yield row
                seq += 1
                http += record[0] == DURATION
    _check_counts(counted, http, problems)


def csv_report(path: Path, problems: Problems) -> Report | None:
    """Nothing but `facts`: ``clock_resolution_ns``, how finely the file gives times."""
    for _, record, _ in islice(_records(path, problems), _LINES_WITH_TIME):
        if (known := _time(record[1])) is not None:
            return Report(facts={"clock_resolution_ns": str(known[1])})
    return None


def _records(path: Path, problems: Problems) -> Iterator[tuple[int, list[str], dict[str, int]]]:
    """Every record after the header with its line and the position of each tag."""
    records = csv_records(text_lines(path, problems, "backslashreplace"), problems)
    _, header = next(records, (0, [""]))
    header[0] = header[0].removeprefix("\ufeff")
    if problems.corrupt_records or header[:3] != _BEGIN:
        problems.invalid("k6 CSV output")
        return
    columns = {name: index for index, name in enumerate(header) if name in _Tags.__struct_fields__}
    for line, record in records:
        if len(record) == len(header):
            yield line, record, columns
        else:
            problems.corrupt(line)


def _csv_row(record: list[str], columns: dict[str, int], seq: int) -> tuple[Any, ...]:
    known = _time(record[1])
    if known is None or _VALUE.fullmatch(record[2]) is None:
        raise ValueError
    tags = _Tags(**{name: record[index] for name, index in columns.items()})
    return _row(seq, known[0], float(record[2]), tags, record[0])


def _time(text: str) -> tuple[int, int] | None:
    """A time in nanoseconds since 1970, and how many of them its last digit stands for."""
    if text.isascii() and text.isdecimal():
        unit_ns = _UNITS_NS.get(len(text))
        return None if unit_ns is None else (int(text) * unit_ns, unit_ns)
    ended_ns = _instant_ns(text)
    # Go drops zeros at the end, so that decimals only show that there are some.
    return None if ended_ns is None else (ended_ns, 1 if "." in text else 10**9)


FORMATS = {
    "k6.json": Format(
        "k6",
        requests=read_json,
        resolution_ns=1,
        begins=rb'\s*\{"(?:type|metric|data)":[^\n]*"(?:Metric|Point)"',
        phases=True,
    ),
    "k6.csv": Format(
        "k6", requests=read_csv, report=csv_report, resolution_ns=1, begins=rb"metric_name,timestamp,", phases=True
    ),
}

GENERATORS = (
    Generator(
        generator="k6",
        load_models=("open", "closed"),
        starts_at="a connection is there and the first byte of the request is being sent",
        ends_at=f"{BODY}; each redirect that is followed is a request of its own",
        connecting="not included: http_req_duration is sending + waiting + receiving",
        stamp="end",
        resolution_ns=1,
        source="source of v1.8.1: lib/netext/httpext/tracer.go, Tracer.Done and Trail.SaveSamples; "
        "https://grafana.com/docs/k6/latest/using-k6/metrics/reference/",
        home="https://k6.io",
    ),
)
