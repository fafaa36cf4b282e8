"""Trace dumps: JSON as Jaeger's query service answers and its interface saves it (``{"data": [trace, ...]}``).

The fields are those of Jaeger's model/json (``traceID``, ``spans``, ``processes``; times in microseconds). A dump is
one JSON document without line breaks, of which one trace is read at a time: memory follows the largest trace, not the
file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from loadstone.readers.base import Problems
from loadstone.readers.json_stream import Document, Refusal, read_document

LONGEST_TRACE_BYTES = 128 << 20
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


def read(path: Path, problems: Problems) -> Iterator[Trace]:
    """Every trace of ``.json`` or ``.json.zst``. What can't be read is named in `problems`; the rest is kept."""

    def traces(document: Document) -> Iterator[Trace]:
        is_dump = False
        for key, *first in document.members():
            if key != "data" or first[0] != "start_array":
                document.value(*first)
                continue
            is_dump = True
            for number, element in enumerate(document.elements(), 1):
                trace = _trace(document.value(*element))
                document.part_bytes = 0
                if trace is None:
                    problems.corrupt(number)
                else:
                    yield trace
        if not is_dump:
            raise Refusal("it is not a valid Jaeger dump (a JSON object with a list named data)")

    return read_document(path, problems, "Jaeger dump", LONGEST_TRACE_BYTES, traces)


def _trace(content: Any) -> Trace | None:
    try:
        found = msgspec.convert(content, _Trace)
    except msgspec.ValidationError:
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
