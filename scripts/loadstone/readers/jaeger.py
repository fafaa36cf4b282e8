"""Trace dumps: JSON as Jaeger's query service answers and its interface saves it (``{"data": [trace, ...]}``).

The fields are those of Jaeger's model/json (``traceID``, ``spans``, ``processes``; times in microseconds). A dump is
one JSON document without line breaks, so its traces are found by their brackets and decoded one at a time: memory
follows the largest trace, not the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from loadstone.readers.base import Problems
from loadstone.readers.stream import ReadInto, explain, open_bytes

_CHUNK_BYTES = 1 << 20
LONGEST_TRACE_BYTES = 128 << 20

# A string (its closing quote is missing when the buffer ends first), or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)|[{}\[\]]', re.DOTALL)
_QUOTE = ord('"')
_OPENING = b"{["
_LATEST_US = 9_000_000_000_000_000  # year 2255: its nanoseconds fit in 64 bits


@dataclass(frozen=True)
class Span:
    """One span. `parent_id` is empty for a span without parent; `follows`: its parent did not wait for it."""

    span_id: str
    parent_id: str
    follows: bool
    service: str
    operation: str
    started_us: int
    duration_us: int
    failed: bool


@dataclass(frozen=True)
class Trace:
    """The spans of one trace, in the dump's order."""

    trace_id: str
    spans: tuple[Span, ...]


@dataclass
class DumpProblems(Problems):
    """`Problems` whose corrupt records are traces, counted from 1 instead of lines."""

    def texts(self) -> list[str]:
        """As for other files, with traces by number."""
        return [text.replace("record", "trace").replace("(line", "(number") for text in super().texts()]


_Micros = Annotated[int, msgspec.Meta(ge=0, le=_LATEST_US)]


class _Reference(msgspec.Struct):
    refType: str = ""  # noqa: N815 - Jaeger's names
    traceID: str = ""  # noqa: N815
    spanID: str = ""  # noqa: N815


class _Tag(msgspec.Struct):
    key: str = ""
    value: object = None


class _Process(msgspec.Struct):
    serviceName: str = ""  # noqa: N815


class _Span(msgspec.Struct):
    spanID: str  # noqa: N815
    operationName: str  # noqa: N815
    startTime: _Micros  # noqa: N815
    duration: _Micros
    traceID: str = ""  # noqa: N815
    parentSpanID: str = ""  # noqa: N815 - before Jaeger had references
    references: list[_Reference] | None = None
    tags: list[_Tag] | None = None
    processID: str = ""  # noqa: N815
    process: _Process | None = None


class _Trace(msgspec.Struct):
    traceID: str  # noqa: N815
    spans: list[_Span]
    processes: dict[str, _Process] | None = None


_decode = msgspec.json.Decoder(_Trace).decode


def read(path: Path, problems: Problems) -> Iterator[Trace]:
    """Every trace of ``.json`` or ``.json.zst``. What can't be read is named in `problems`; the rest is kept."""
    try:
        with open_bytes(path) as stream:
            if path.stat().st_size == 0:
                problems.truncated = "it is empty"
                return
            for number, content in enumerate(elements(stream.readinto, problems), 1):
                trace = _trace(content)
                if trace is None:
                    problems.corrupt(number)
                else:
                    yield trace
    except OSError as error:
        explain(error, problems)


def _trace(content: bytes) -> Trace | None:
    try:
        found = _decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    processes = found.processes or {}
    return Trace(found.traceID, tuple(_span(found.traceID, span, processes) for span in found.spans))


def _span(trace_id: str, span: _Span, processes: dict[str, _Process]) -> Span:
    parent_id, follows = _parent(trace_id, span)
    process = span.process or processes.get(span.processID)
    return Span(
        span_id=span.spanID,
        parent_id=parent_id,
        follows=follows,
        service=process.serviceName if process else "",
        operation=span.operationName,
        started_us=span.startTime,
        duration_us=min(span.duration, _LATEST_US - span.startTime),
        failed=any(_is_failure(tag) for tag in span.tags or ()),
    )


def _parent(trace_id: str, span: _Span) -> tuple[str, bool]:
    """As Jaeger's ``Span.ParentSpanID`` has it: the first CHILD_OF within the trace, else the first FOLLOWS_FROM."""
    within = [reference for reference in span.references or () if reference.traceID in ("", trace_id)]
    for kind in ("CHILD_OF", "FOLLOWS_FROM"):
        for reference in within:
            if reference.refType == kind and reference.spanID:
                return reference.spanID, kind == "FOLLOWS_FROM"
    return span.parentSpanID, False


def _is_failure(tag: _Tag) -> bool:
    """OpenTracing's ``error``, or OpenTelemetry's status as Jaeger shows it."""
    return (tag.key == "error" and tag.value in (True, "true")) or (
        tag.key == "otel.status_code" and tag.value == "ERROR"
    )


def elements(read_into: ReadInto, problems: Problems) -> Iterator[bytes]:
    """The bytes of each element of the list ``data`` of a JSON object, whatever else that holds and in any order."""
    scanner = _Scanner(problems)
    buffer, filled = bytearray(_CHUNK_BYTES), 0
    while not scanner.ended and (count := read_into(memoryview(buffer)[filled:])):
        filled += count
        yield from scanner.scan(buffer, filled)
        keep = scanner.drop()
        buffer[: filled - keep] = buffer[keep:filled]
        filled -= keep
        if filled == len(buffer):
            if filled >= LONGEST_TRACE_BYTES:
                problems.damaged = f"it holds a trace of more than {LONGEST_TRACE_BYTES >> 20} MiB"
                return
            buffer += bytes(filled)
    if not scanner.found and not problems.damaged:
        problems.damaged = "it is no dump of Jaeger (a JSON object with a list named data)"
    elif not scanner.ended and not problems.damaged:
        problems.truncated = "it ends in the middle of a trace"


class _Scanner:
    """Where elements begin and end, over a buffer that moves on. Looks at brackets and strings only."""

    def __init__(self, problems: Problems) -> None:
        self.found = self.ended = False
        self._problems = problems
        self._depth = 0
        self._position = 0  # up to which the buffer has been looked at
        self._start = -1  # of the element being read
        self._in_data = self._named_data = False

    def scan(self, buffer: bytearray, filled: int) -> Iterator[bytes]:
        for token in _TOKEN.finditer(buffer, self._position, filled):
            first = buffer[token.start()]
            if first == _QUOTE:
                if not token[1]:
                    self._position = token.start()
                    return
                if self._depth == 1:
                    self._named_data = token[0] == b'"data"'
            elif first in _OPENING:
                self._open(first, token.start())
            else:
                self._depth -= 1
                if self._in_data and self._depth == 2 and self._start >= 0:
                    yield bytes(memoryview(buffer)[self._start : token.end()])
                    self._start = -1
                elif self._depth == 1:
                    self._in_data = False
                elif self._depth <= 0:
                    self.ended = True
                    return
            self._position = token.end()
        self._position = filled

    def _open(self, bracket: int, position: int) -> None:
        if self._depth == 1:
            if self._named_data and bracket == _OPENING[1]:
                self._in_data = self.found = True
            self._named_data = False
        elif self._depth == 2 and self._in_data:
            self._start = position
        self._depth += 1

    def drop(self) -> int:
        """How many bytes at the buffer's start are done with; positions count from there afterwards."""
        done = self._position if self._start < 0 else self._start
        self._position -= done
        self._start = min(self._start, 0)
        return done
