"""The interface of load generators, which is all that `loadstone.collect.run` uses, and what they share."""

import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

from loadstone.archive.stages import Attack, apart
from loadstone.collect.targets.base import Job
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from loadstone.process import Program, Sending

# Level 20 costs 70 times the CPU of level 3 for 10 % less.
_LEVEL = 3
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Results:
    """A run's files in the archive's formats, suffix -> file, and more keys of its record.

    The file of kind ``results`` (`archive.parse_name`) makes the run collected.
    """

    files: dict[str, Path]
    record: Mapping[str, Any] = field(default_factory=dict)


class LoadGenerator(ABC):
    """One run's load, sent by another program. It keeps its files in the run's staging folder."""

    succeeds_with = frozenset((0,))  # exit codes that mean that everything was sent

    def __init__(self, job: Job, folder: Path) -> None:
        self._job = job
        self._folder = folder

    def attacks(self) -> list[Attack]:
        """What is sent by each of the programs that are started one after another."""
        return apart(self._job.planned.load)

    @abstractmethod
    def start(self, attack: Attack) -> Sending:
        """Start one of the programs."""

    @abstractmethod
    def finish(self) -> Results:
        """What was measured; called when the target is down. Raises RunFailedError when nothing was sent."""


def environment(*unset: str, **variables: str) -> dict[str, str | None]:
    """Variables of a load generator: without a proxy, which would be measured instead of the target.

    Variables whose names begin with one of `unset` are removed: options of a tool that are not part of the plan.
    """
    removed = [name for name in os.environ if unset and name.startswith(unset)]
    return {**dict.fromkeys([*removed, *_PROXIES]), "NO_PROXY": "*", "no_proxy": "*", **variables}


def as_stdin(content: bytes) -> IO[bytes]:
    """A program's standard input, as a file without a name, because requests may hold credentials."""
    # In memory where the system has that, for it may hold a private key. The caller closes it.
    in_memory = hasattr(os, "memfd_create")
    file = os.fdopen(os.memfd_create("input"), "w+b") if in_memory else tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(0)
    return file


def redacting() -> dict[str, Any]:
    """What is removed from results before they are written, as `paced` and `serial` read it."""
    return {"redact": redact.names().settings()}


def headers(job: Job) -> dict[str, list[str]]:
    """The request's headers that are the same each time."""
    drawn = {name.lower() for name in job.draws}
    found: Mapping[str, list[str]] = job.planned.request.get("header", {})
    return {name: values for name, values in found.items() if name.lower() not in drawn}


def one_line(values: Mapping[str, list[str]]) -> dict[str, str]:
    """Headers for tools that take one value per name."""
    return {name: ", ".join(each) for name, each in values.items()}


def negotiated(files: Iterable[Path]) -> list[dict[str, Any]]:
    """What TLS negotiated, from the files that `paced` and `serial` write; equal entries are one."""
    counts: Counter[str] = Counter()
    for file in files:
        for entry in json.loads(file.read_bytes()) if file.exists() else ():
            handshakes = entry.pop("handshakes")
            counts[json.dumps(entry)] += handshakes
    return [{**json.loads(entry), "handshakes": handshakes} for entry, handshakes in sorted(counts.items())]


def compress(sources: list[Path], destination: Path, removed: redact.Removed | None = None) -> None:
    """Concatenate files of lines, zstd compressed with a checksum; each is removed as soon as it was read.

    With `removed` credentials are removed from them, and counted.
    """
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=1)
    with destination.open("wb") as output, compressor.stream_writer(output, closefd=False) as writer:
        for source in sources:
            with source.open("rb") as file:
                while content := b"".join(file.readlines(1 << 20)):
                    writer.write(content if removed is None else redact.names().encoded(content, removed))
            source.unlink()


def redact_file(path: Path, removed: redact.Removed) -> None:
    """Remove credentials from a report of a tool."""
    path.write_bytes(redact.names().encoded(path.read_bytes(), removed))


def compress_output(program: Program, destination: Path) -> None:
    """Compress what a program prints in the same way. Raises LoadstoneError when the disk is full."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=1)
    try:
        with destination.open("wb") as output:
            compressor.copy_stream(program.stdout, output, read_size=1 << 18)
    except BaseException as error:
        program.stop()
        if isinstance(error, OSError):
            raise LoadstoneError(f"{destination} cannot be written: {error.strerror}") from None
        raise
