"""What both raw outputs of k6 have in common: a point of ``http_req_duration`` is a request.

k6 stamps all points of a request when it has ended (EndTime, lib/netext/httpext/tracer.go), so `sent_at` is that time
less the latency. The latency is k6's own: sending, waiting and receiving the whole body, without waiting for a
connection, connecting and TLS handshake. k6 tells bytes per iteration only; per request they are null.
"""

import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

import pyarrow as pa

from loadstone.readers.base import SCHEMA, Problems

DURATION = "http_req_duration"
REQUESTS = "http_reqs"

K6_SCHEMA = SCHEMA.append(pa.field("phase", pa.string()))
BATCH_ROWS = 1 << 14
BATCH_TEXT = 32 << 20

# k6 runs these functions of a script once, before and after all scenarios.
OUTSIDE = ("setup", "teardown")

_LAST_NS = (1 << 63) - 1
_NS_PER_MS = 1_000_000
_STATUS = re.compile(r"[0-9]{1,9}")
_TIME = re.compile(
    r"((?:19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})"
)


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a point that matter here; those that are absent are empty."""

    status: str
    error: str
    error_code: str
    scenario: str
    group: str


@dataclass
class Rows:
    """Requests on their way into a batch. `seq` counts them in the file's order, which is that of their ends."""

    seq: int = 0
    text: int = 0
    _rows: list[tuple[int, int, int | None, str, str | None]] = field(default_factory=list)

    def add(self, ended_ns: int | None, value_ms: float, tags: Tags) -> bool:
        """False when it can't be understood."""
        if ended_ns is None or not math.isfinite(value_ms) or not 0 <= value_ms * _NS_PER_MS <= ended_ns <= _LAST_NS:
            return False
        if tags.status and _STATUS.fullmatch(tags.status) is None:
            return False
        # A status from 400 on sets error_code too (1000 more), without a text: the status says it better.
        code = int(tags.status) if tags.status else None
        error = tags.error or (f"error_code {tags.error_code}" if tags.error_code and not code else "")
        latency_ns = round(value_ms * _NS_PER_MS)
        self._rows.append((ended_ns - latency_ns, latency_ns, code, error, _phase(tags)))
        self.text += len(error)
        return True

    @property
    def full(self) -> bool:
        return len(self._rows) >= BATCH_ROWS or self.text >= BATCH_TEXT

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self) -> pa.RecordBatch:
        """The rows so far, with the columns of `K6_SCHEMA`; there are none afterwards."""
        sent_at, latency_ns, code, error, phase = zip(*self._rows, strict=True)
        count, first = len(self._rows), self.seq
        self.seq += count
        self.text = 0
        self._rows.clear()
        columns = {
            "seq": pa.array(range(first, first + count), pa.int64()),
            "sent_at": pa.array(sent_at, pa.timestamp("ns")),
            "latency_ns": pa.array(latency_ns, pa.int64()),
            "code": pa.array(code, pa.int32()),
            "error": pa.array(error, pa.string()),
            "bytes_out": pa.nulls(count, pa.int64()),
            "bytes_in": pa.nulls(count, pa.int64()),
            "phase": pa.array(phase, pa.string()),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=K6_SCHEMA)


def _phase(tags: Tags) -> str | None:
    """The scenario; ``setup`` or ``teardown``, which are of none; None of a k6 that has no scenarios."""
    if tags.scenario:
        return tags.scenario
    name = tags.group.removeprefix("::").partition("::")[0]
    return name if name in OUTSIDE else None


def compare(counted: int, rows: int, problems: Problems) -> None:
    """Every request is counted by one point and measured by another: tell when one of them was lost."""
    if counted and counted != rows and not problems.texts():
        problems.damaged = f"it counts {counted} requests and holds the durations of {rows}"


def instant_ns(text: str) -> int | None:
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
