"""The parts of an Artillery report one after the other, however large it is."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from io import RawIOBase
from pathlib import Path
from typing import Any

import ijson

from loadstone.readers.base import NS_PER_MS, Figure, Problems, json_number
from loadstone.readers.stream import explain, open_bytes

_CHUNK_ENTRIES = 1 << 14
_ENTRY_VALUES = 4
_MOST_VALUES = 1_000_000  # of one period besides its latencies
_LONGEST_TEXT_BYTES = 4 << 20  # the parser looks at all of a text again whenever more of it comes
_NUMBERS = b"0123456789.+-eE[]\n\r\t ,"

_Event = tuple[str, Any]


@dataclass(frozen=True)
class Unit:
    """A part, by its `kind`.

    ``latencies``: some entries of the ``latencies`` of the period that comes next: numbers, tuples of what an entry
    holds, None for anything else. ``period``, ``aggregate``: that object, without its ``latencies``.
    """

    kind: str
    content: Any


class _RefusedError(Exception):
    """The content is none that Artillery writes; the message continues "is damaged: "."""


_FAILURES = (OSError, ijson.JSONError, _RefusedError)


def to_ns(milliseconds: float) -> float:
    """Nanoseconds of a figure in ms, in decimals as it is written: 64.96357 ms are 64963570 ns."""
    return float(Decimal(str(milliseconds)) * NS_PER_MS)


def mapping(content: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under a key; empty when there is none."""
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def figure(section: str, metric: str, statistic: str, value: object, unit: str) -> Iterator[Figure]:
    """One figure, if the value is a number; in ms where the unit is to be ns."""
    known = json_number(value)
    if known is not None:
        yield Figure(section, metric, statistic, to_ns(known) if unit == "ns" else float(known), unit, str(known))


def parts(path: Path, problems: Problems) -> Iterator[Unit]:
    """The parts of a report, in its order, up to where it can be read; `problems` then says why."""
    bounded: _Bounded | None = None
    try:
        with open_bytes(path) as stream:
            if path.stat().st_size == 0:
                problems.truncated = "it is empty"
                return
            bounded = _Bounded(stream)
            yield from _Walk(bounded).units()
    except OSError as error:
        explain(error, problems)
    except ijson.JSONError:
        if bounded is not None and bounded.ended:
            problems.truncated = "it ends in the middle of the report"
        else:
            problems.damaged = "it is not JSON all through"
    except _RefusedError as error:
        problems.damaged = str(error)


class _Bounded:
    """A stream that the parser can be given, whatever the file holds.

    No single text or number can fill the memory (the parser keeps each as a whole), and all of it is UTF-8 as Python
    has it: an exception within the parser could crash it. What is not becomes U+FFFD.
    """

    def __init__(self, stream: RawIOBase) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._without_end = 0
        self.ended = False

    def read(self, size: int = -1) -> bytes:
        while size and not self.ended:  # the parser asks for nothing to see what type it gets
            chunk = self._stream.read(size) or b""
            self.ended = not chunk
            ends = b'"' in chunk or (b"," in chunk and not chunk.translate(None, _NUMBERS))
            self._without_end = 0 if ends else self._without_end + len(chunk)
            if self._without_end > _LONGEST_TEXT_BYTES:
                raise _RefusedError(f"it holds a text of more than {_LONGEST_TEXT_BYTES >> 20} MiB")
            # The decoder's state: nothing of the chunk before is waiting for its end.
            if not (chunk.isascii() and self._decode.getstate()[0] == b""):
                chunk = self._decode.decode(chunk, self.ended).encode()
            if chunk:
                return chunk
        return b""


class _Walk:
    """The parser's events, cut into units."""

    def __init__(self, stream: _Bounded) -> None:
        self._stream = stream
        # As floats: an exception of Python's number types within the parser, whatever the number, would crash it.
        self._events: Iterator[_Event] = ijson.basic_parse(stream, use_float=True)
        self._values = 0

    def units(self) -> Iterator[Unit]:
        if next(self._events)[0] != "start_map":
            raise _RefusedError("it is no report of Artillery")
        for event, key in self._events:
            if event == "end_map":
                continue  # what follows is for the parser to refuse
            event, value = next(self._events)  # noqa: PLW2901
            if key == "intermediate" and event == "start_array":
                yield from self._periods()
            elif key == "aggregate" and event == "start_map":
                for unit in self._object(key):
                    if unit.kind == key:  # before 1.6 it repeated all latencies
                        yield unit
            else:
                self._values = 0
                self._value(event, value)

    def _periods(self) -> Iterator[Unit]:
        for event, value in self._events:
            if event == "end_array":
                return
            if event == "start_map":
                yield from self._object("period")
            else:
                self._value(event, value)

    def _object(self, kind: str) -> Iterator[Unit]:
        """The latencies of an object whose brace has been read, then the object."""
        found: dict[str, Any] = {}
        self._values = 0
        for event, key in self._events:
            if event == "end_map":
                yield Unit(kind, found)
                return
            event, value = next(self._events)  # noqa: PLW2901
            if key == "latencies" and event == "start_array":
                yield from self._latencies()
            else:
                found[key] = self._value(event, value)

    def _latencies(self) -> Iterator[Unit]:
        entries: list[Any] = []
        failure: Exception | None = None
        try:
            for event, value in self._events:
                if event == "number":
                    entries.append(value)
                elif event == "end_array":
                    break
                elif event == "start_array":
                    entries.append(self._entry())
                else:
                    self._values = 0
                    self._value(event, value)
                    entries.append(None)
                if len(entries) == _CHUNK_ENTRIES:
                    yield Unit("latencies", entries)
                    entries = []
        except _FAILURES as error:
            failure = error  # after what could be read
            if self._stream.ended:
                del entries[-1:]  # where the file was cut off may be within a number
        if entries:
            yield Unit("latencies", entries)
        if failure is not None:
            raise failure

    def _entry(self) -> tuple[Any, ...]:
        """What an entry of before 1.7 holds, behind its bracket."""
        entry: list[Any] = []
        for event, value in self._events:
            if event == "end_array":
                break
            if event in ("start_map", "start_array"):
                self._values = 0
                self._value(event, value)
                value = None  # noqa: PLW2901
            if len(entry) <= _ENTRY_VALUES:
                entry.append(value)
        return tuple(entry)

    def _value(self, event: str, value: Any) -> Any:
        """The value that begins with this event; never deeper than the parser's own stack."""
        builder, depth = ijson.ObjectBuilder(), 0
        while True:
            builder.event(event, value)
            depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
            self._values += 1
            if self._values > _MOST_VALUES:
                raise _RefusedError(f"one of its objects holds more than {_MOST_VALUES} values")
            if depth == 0:
                return builder.value
            event, value = next(self._events)
