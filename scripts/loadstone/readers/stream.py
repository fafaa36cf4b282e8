"""Reading of files, compressed or not, within bounded memory; files that end early become problems."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any

import pyarrow as pa

from loadstone.archive.durable import open_raw
from loadstone.readers.base import Problems, Report

# A megabyte stays in the processor's cache between decompressing and parsing.
_CHUNK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 64 << 20
LARGEST_BYTES = 16 << 20  # of a small file
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # as PowerShell redirects

ReadInto = Callable[[memoryview], int | None]


def open_bytes(path: Path) -> RawIOBase:
    """A file's content, decompressed when it is named ``.zst``. Raises OSError, also when it is read from."""
    return _Decompressed(path) if path.name.endswith(".zst") else open_raw(path)


class _Decompressed(RawIOBase):
    """The content of a file of zstd frames, up to the last byte that can be decompressed; only then an OSError.

    Arrow's stream raises at a frame without its end, a wrong checksum and foreign bytes, and continues after a frame.
    (python-zstandard's accepts a truncated file as complete.)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._stream = self._open()
        self._delivered = 0
        self._error: OSError | None = None

    def _open(self) -> tuple[FileIO, pa.CompressedInputStream]:
        file = open_raw(self._path)
        return file, pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._error is not None:
            raise self._error
        try:
            count = int(self._stream.readinto(buffer))
        except OSError as error:
            self._error = error
            count = self._read_remaining(buffer)
            if count == 0:
                raise
        self._delivered += count
        return count

    def _read_remaining(self, buffer: Any) -> int:
        """What a failed read decompressed before it failed; Arrow does not report it, so read again byte by byte."""
        self._file.close()
        self._file, self._stream = self._open()
        skipped = 0
        while skipped < self._delivered:
            skipped += len(self._stream.read(min(self._delivered - skipped, len(buffer))))
        count = 0
        view = memoryview(buffer).cast("B")
        try:
            while count < len(view) and self._stream.readinto(view[count : count + 1]):
                count += 1
        except OSError:
            pass
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[bytearray, int]]:
    """The lines of a file; see `whole_lines`. An empty file is truncated: every tool writes at least one record."""
    try:
        with open_bytes(path) as stream:
            if path.stat().st_size == 0:
                problems.truncated = "it is empty"
                return
            yield from whole_lines(stream.readinto, problems)
    except OSError as error:
        note_read_error(error, problems)


def note_read_error(error: OSError, problems: Problems) -> None:
    """Say in `problems` what an error of `open_bytes` or of reading from it means."""
    if error.errno:
        problems.damaged = f"it cannot be read: {error.strerror}"
    elif "Truncated compressed stream" in str(error):
        problems.truncated = "the compressed data end early"
    else:
        problems.damaged = str(error)


def whole_lines(read_into: ReadInto, problems: Problems) -> Iterator[tuple[bytearray, int]]:
    """Yield (buffer, end): ``buffer[:end]`` holds whole lines, each with its line feed. Valid until the next step.

    A last line without a line feed gets one. A line beyond `LONGEST_LINE_BYTES` ends the reading.
    """
    buffer = bytearray(_CHUNK_BYTES)
    filled = 0
    while count := read_into(memoryview(buffer)[filled:]):
        filled += count
        if end := buffer.rfind(b"\n", filled - count, filled) + 1:
            yield buffer, end
            buffer[: filled - end] = buffer[end:filled]
            filled -= end
        if filled == len(buffer):
            if filled >= LONGEST_LINE_BYTES:
                problems.damaged = f"it holds a line of more than {LONGEST_LINE_BYTES >> 20} MiB"
                return
            buffer += bytes(filled)
    if filled:
        buffer[filled:] = b"\n"
        yield buffer, filled + 1


def text_lines(path: Path, problems: Problems, errors: str = "replace") -> Iterator[str]:
    """The lines of a file as text, each with its line feed; `errors`: how bytes that are not UTF-8 are decoded."""
    return decoded_lines(read_lines(path, problems), errors)


def decoded_lines(blocks: Iterable[tuple[bytearray, int]], errors: str) -> Iterator[str]:
    """The lines of what `whole_lines` yields as text, each with its line feed."""
    for buffer, end in blocks:
        for line in buffer[: end - 1].decode("utf-8", errors).split("\n"):
            yield line + "\n"


def matched_lines(
    path: Path, problems: Problems, patterns: Mapping[str, re.Pattern[str]], header: str
) -> Iterator[re.Match[str] | None]:
    """Every line after the header as its pattern matches it; None for one that it does not match, which is corrupt.

    `patterns` has the pattern of lines by the file's first line, which `header` describes. Blank lines are skipped.
    """
    lines = text_lines(path, problems)
    pattern = patterns.get(next(lines, "").removeprefix("\ufeff").rstrip())
    if pattern is None:
        problems.damaged = problems.damaged or f"its first line is not {header}"
        return
    for number, line in enumerate(lines, 2):
        if line.isspace():
            continue
        found = pattern.fullmatch(line.rstrip("\r\n"))
        if found is None:
            problems.corrupt(number)
        yield found


def csv_records(lines: Iterable[str], problems: Problems, before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Every record of separated values that is not empty, with the line in which it ends (from 1).

    An invalid record is corrupt, and reading continues after it. `before` lines of the file come before these.
    """
    csv.field_size_limit(LONGEST_LINE_BYTES)
    records = csv.reader(lines, strict=True)
    while True:
        try:
            record = next(records, None)
        except csv.Error:
            problems.corrupt(before + records.line_num)
            continue
        if record is None:
            return
        if record:
            yield before + records.line_num, record


# --- small files ------------------------------------------------------------------------------------------------------


def read_bytes(path: Path, problems: Problems, largest_bytes: int = LARGEST_BYTES) -> bytes | None:
    """A file's bytes, decompressed, up to where they can be read. None when there are none."""
    content = bytearray()
    try:
        with open_bytes(path) as stream:
            while len(content) <= largest_bytes and (chunk := stream.read(_CHUNK_BYTES)):
                content += chunk
    except OSError as error:
        note_read_error(error, problems)
    if not content:
        problems.truncated = problems.truncated or ("" if problems.damaged else "it is empty")
        return None
    if len(content) > largest_bytes:
        problems.damaged = f"it is larger than {largest_bytes >> 20} MiB"
        return None
    return bytes(content)


def read_text(path: Path, problems: Problems) -> str | None:
    """The same as text with line feeds only: UTF-8, or UTF-16 with its mark. Invalid bytes become U+FFFD."""
    content = read_bytes(path, problems)
    return None if content is None else decode(content)


def text_reader(parse: Callable[..., Report | None]) -> Callable[..., Report | None]:
    """A function that reads a report from a small text file, from one that parses the text; both may get a unit."""

    def report(path: Path, problems: Problems, *unit: str | None) -> Report | None:
        text = read_text(path, problems)
        return None if text is None else parse(text, problems, *unit)

    return report


def decode(content: bytes) -> str:
    """The text of these bytes, as `read_text` gives it."""
    text = content.decode(_BYTE_ORDER_MARKS.get(content[:2], "utf-8-sig"), "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_object(path: Path, problems: Problems, what: str) -> dict[str, Any] | None:
    """A file's one JSON object; None, with the reason in `problems`, when there is none. `what` is its format."""
    content = read_bytes(path, problems)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        problems.damaged = problems.damaged or ("" if problems.truncated else "it is not JSON")
        return None
    if not isinstance(found, dict):
        problems.damaged = f"it is not a valid {what}"
        return None
    return found
