"""Raw bytes as whole lines within bounded memory, compressed or not, with every way in which a file can end early."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pyarrow as pa

from loadstone.readers.base import Problems

# A megabyte stays in the processor's cache between decompressing and parsing.
_CHUNK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 64 << 20

ReadInto = Callable[[memoryview], int]


def open_raw(path: Path) -> FileIO:
    """A regular file's bytes; anything else (a named pipe would block for ever) is an OSError without a number."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


@contextmanager
def open_bytes(path: Path) -> Iterator[FileIO | pa.NativeFile]:
    """The same decompressed when the file is named ``.zst``. Raises OSError, also when it is read from.

    Arrow raises at a frame without its end, a wrong checksum and foreign bytes, and goes on behind a frame.
    """
    with open_raw(path) as file:
        if path.name.endswith(".zst"):
            with pa.PythonFile(file, "r") as compressed:
                yield pa.CompressedInputStream(compressed, "zstd")
        else:
            yield file


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[bytearray, int]]:
    """The lines of a file; see `whole_lines`. An empty file is truncated: every tool writes at least one record."""
    try:
        with open_bytes(path) as stream:
            if path.stat().st_size == 0:
                problems.truncated = "it is empty"
                return
            yield from whole_lines(stream.readinto, problems)
    except OSError as error:
        explain(error, problems)


def explain(error: OSError, problems: Problems) -> None:
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
