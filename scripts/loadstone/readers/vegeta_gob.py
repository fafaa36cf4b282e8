"""Vegeta's binary results (gob): decoded by vegeta itself, then read as its JSON lines."""

import os
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import IO

import pyarrow as pa

from loadstone.process import Minder, Program
from loadstone.readers import vegeta_json
from loadstone.readers.base import Problems
from loadstone.readers.stream import explain, open_bytes, whole_lines

_COPY_BYTES = 1 << 18

# A message of gob is at most 1 GiB. What is none, vegeta tries as lines of any length: that must end somewhere.
MOST_BYTES = 3 << 30


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `SCHEMA` from ``.bin`` or ``.bin.zst``. Raises LoadstoneError when there is no vegeta.

    A consumer that stops early ends the program too.
    """
    with tempfile.TemporaryDirectory() as folder, Minder() as minder:
        feeder = _Feeder(path)
        with feeder.output:
            command = ["vegeta", "encode", "--to", "json"]
            log = Path(folder) / "log"
            program = Program(command, minder, log, stdin=feeder.output, stdout=PIPE, most_bytes=MOST_BYTES)
        feeder.start()
        try:
            yield from vegeta_json.parse(whole_lines(partial(_read_into, program.stdout), problems), problems)
            code = program.wait()
            feeder.join()
            if code and lacked_memory(_first_line(log)):
                problems.damaged = f"it takes more than {MOST_BYTES / (1 << 30):g} GiB of memory to decode"
            else:
                _judge(code, program.tail(1), feeder, problems)
        finally:
            program.stop(grace_s=0)
            program.stdout.close()
            feeder.join()


def _read_into(stream: IO[bytes], buffer: memoryview) -> int:
    return os.readv(stream.fileno(), [buffer])


def lacked_memory(said: bytes) -> bool:
    """By the first line of a Go program's last words; one in a hundred uses what it was refused and crashes."""
    return b"memory" in said or said.startswith(b"SIGSEGV")


def _first_line(log: Path) -> bytes:
    with log.open("rb") as file:
        return file.readline(1000)


def _judge(code: int, printed: str, feeder: "_Feeder", problems: Problems) -> None:
    """What vegeta's end says of the file. What is wrong with the compressed bytes comes first: the rest follows."""
    if feeder.problems.texts():
        problems.truncated = feeder.problems.truncated
        problems.damaged = feeder.problems.damaged
    elif feeder.copied_bytes == 0:
        problems.truncated = "it is empty"
    elif "unexpected EOF" in printed:
        problems.truncated = "it ends in the middle of a record"
    elif code or "can't detect" in printed:
        problems.damaged = f"vegeta can't decode it ({printed.strip() or f'exit code {code}'})"


class _Feeder(threading.Thread):
    """Copies a file's decompressed content into a pipe and closes that, whether or not all of it was taken."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        readable, self._pipe = os.pipe()
        self.output = os.fdopen(readable, "rb")
        self.problems = Problems()
        self.copied_bytes = 0
        self._path = path

    def run(self) -> None:
        with os.fdopen(self._pipe, "wb", buffering=0) as pipe:
            try:
                with open_bytes(self._path) as stream:
                    while chunk := stream.read(_COPY_BYTES):
                        self.copied_bytes += len(chunk)
                        pipe.write(chunk)
            except BrokenPipeError:
                pass
            except OSError as error:
                explain(error, self.problems)
