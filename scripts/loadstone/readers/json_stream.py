"""JSON documents of any size, part by part within bounded memory, with every way in which they can end early."""

import codecs
from collections.abc import Callable, Iterator
from io import RawIOBase
from pathlib import Path
from sys import intern
from typing import Any, TypeVar

import ijson

from loadstone.readers.base import Problems
from loadstone.readers.stream import note_read_error, open_bytes


class Refusal(Exception):  # noqa: N818 - it becomes a problem of the file
    """Why a document is read no further; the message continues "is damaged: "."""


class Document:
    """The events of a JSON document, as ijson gives them, in order.

    The reader of a part sets `part_bytes` to 0 after it. Reading ends when that passes `most_bytes`, so that no text,
    list or object can fill the memory.
    """

    def __init__(self, stream: RawIOBase, most_bytes: int) -> None:
        self.has_ended = False  # a number that came last may then lack digits
        self.part_bytes = 0
        self._most_bytes = most_bytes
        # The parser gets valid UTF-8 and returns floats, not decimals: a Python exception within it could crash it.
        # Invalid bytes become U+FFFD.
        self._content = codecs.EncodedFile(stream, "utf-8", errors="replace")
        self.events: Iterator[tuple[str, Any]] = ijson.basic_parse(self, use_float=True)

    def read(self, size: int) -> bytes:
        """Called by the parser."""
        content: bytes = self._content.read(size)
        self.part_bytes += len(content)
        self.has_ended = size > 0 and not content  # it asks for nothing to see what type it gets
        if self.part_bytes > self._most_bytes:
            raise Refusal(f"a part of it is larger than {self._most_bytes >> 20} MiB")
        return content

    def members(self) -> Iterator[tuple[Any, ...]]:
        """The key and the first event and value of each member of an object whose brace has been read."""
        for event, key in self.events:
            if event == "end_map":
                return
            yield key, *next(self.events)

    def elements(self) -> Iterator[tuple[str, Any]]:
        """The first event and value of each element of a list whose bracket has been read."""
        for event, value in self.events:
            if event == "end_array":
                return
            yield event, value

    def value(self, event: str, value: Any) -> Any:
        """The whole value of which these are the first event and value. A deep one raises RecursionError."""
        events = self.events
        if event == "start_array":
            elements: list[Any] = []
            for inner, element in events:
                if inner == "end_array":
                    return elements
                elements.append(self.value(inner, None) if element is None else element)
        elif event == "start_map":
            members: dict[str, Any] = {}
            for inner, key in events:
                if inner == "end_map":
                    return members
                inner, member = next(events)  # noqa: PLW2901
                members[intern(key)] = self.value(inner, None) if member is None else member
        return value


_Part = TypeVar("_Part")


def read_document(
    path: Path, problems: Problems, what: str, most_bytes: int, parts: Callable[[Document], Iterator[_Part]]
) -> Iterator[_Part]:
    """The `parts` of a file's one JSON object, whose brace has been read; `problems` say what ends the reading early.

    `what` the file is to be, as in "it ends in the middle of the Artillery report".
    """
    document: Document | None = None
    try:
        with open_bytes(path) as stream:
            document = Document(stream, most_bytes)
            if next(document.events)[0] != "start_map":
                raise Refusal(f"it is not a valid {what}")
            yield from parts(document)
            for _ in document.events:  # what follows is for the parser to refuse
                pass
    except OSError as error:
        note_read_error(error, problems)
    except ijson.JSONError:
        if document is None or not document.has_ended:
            problems.damaged = "it is not valid JSON"
        elif path.stat().st_size == 0:
            problems.truncated = "it is empty"
        else:
            problems.truncated = f"it ends in the middle of the {what}"
    except Refusal as error:
        problems.damaged = str(error)
    except RecursionError:
        problems.damaged = "its values are nested too deeply"
