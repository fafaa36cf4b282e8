"""hey's raw output (``hey -o csv``): one line per request that got an answer, in the order in which requests ended.

Times are in seconds with four decimals: the resolution is 0.1 ms (`RESOLUTION_NS`). ``response-time`` is from before
the connection is asked for to the end of the body; ``offset``, the start since hey's own, stands for the absolute time
that hey does not write. hey 0.1.1 and before write neither ``status-code`` nor ``offset``; both are then null. Bytes
are never known. (hey's source, requester/requester.go and report.go.)

Missing from the file without a trace:

- a request that failed without an answer (refused, reset, timed out). If all failed, the file has only a header.
- everything after the first `MOST_ROWS` answers.
- requests that were never sent: ``-c`` workers send ``n // c`` each, the remainder is dropped.

Missing requests only show when rows are compared with ``n // c * c``, where the declaration gives it, or with rate x
duration.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from loadstone.readers.base import BODY, GO_CLIENT, SCHEMA, Format, Generator, Problems, batches
from loadstone.readers.stream import matched_lines

RESOLUTION_NS = 100_000
MOST_ROWS = 1_000_000

# `SCHEMA` plus when a request was sent: nanoseconds since hey was started.
HEY_SCHEMA = SCHEMA.append(pa.field("offset_ns", pa.int64()))

_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"
_SECONDS = r"([0-9]{1,9})\.([0-9]{4})"
_LATENCY = _SECONDS + r"(?:,-?[0-9]{1,9}\.[0-9]{4}){5}"
_LINES = {
    _HEADER: re.compile(_LATENCY + "()()()"),
    _HEADER + ",status-code,offset": re.compile(_LATENCY + ",([0-9]{3})," + _SECONDS),
}
_COLUMNS = ("seq", "latency_ns", "code", "error", "offset_ns")


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `HEY_SCHEMA` from ``.csv`` or ``.csv.zst``; `sent_at` is null, `seq` counts the file's records."""
    return batches(_rows(path, problems), _COLUMNS, HEY_SCHEMA)


def _rows(path: Path, problems: Problems) -> Iterator[tuple[Any, ...]]:
    for seq, found in enumerate(matched_lines(path, problems, _LINES, "the header of hey -o csv")):
        if found is None:
            continue
        # Exact: the digits without the point are tenths of milliseconds.
        seconds, decimals, code, sent_s, sent_decimals = found.groups()
        latency_ns = int(seconds + decimals) * RESOLUTION_NS
        if code:
            yield seq, latency_ns, int(code), "", int(sent_s + sent_decimals) * RESOLUTION_NS
        else:
            yield seq, latency_ns, None, "", None


FORMATS = {
    "hey.csv": Format("hey", requests=read, resolution_ns=RESOLUTION_NS, begins=rb"response-time,DNS\+dialup,"),
}

GENERATORS = (
    Generator(
        generator="hey",
        load_models=("closed",),
        starts_at=GO_CLIENT,
        ends_at=BODY,
        connecting="included: name look-up, TCP and TLS of a new connection",
        stamp="offset",
        resolution_ns=1e5,
        source="source: requester/requester.go, Work.makeRequest, and its CSV (%4.4f seconds), in which requests "
        "without a response have no line",
        home="https://github.com/rakyll/hey",
    ),
)
