"""What every load generator does for a run; `loadstone.collect.run` knows only this."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import zstandard

from loadstone.archive.stages import Attack
from loadstone.collect.targets.base import Job
from loadstone.errors import LoadstoneError
from loadstone.process import Program, Sending

# Level 20 costs 70 times the CPU of level 3 for 10 % less.
_LEVEL = 3
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Results:
    """A run's files in the archive's formats, suffix -> file, and what its record says besides.

    The file of kind ``results`` (`archive.parse_name`) makes the run collected.
    """

    files: dict[str, Path]
    said: Mapping[str, Any] = field(default_factory=dict)


class LoadGenerator(Protocol):
    """One run's load, sent by another program. It keeps its files in the run's staging folder."""

    @property
    def succeeds_with(self) -> frozenset[int]:
        """Exit codes that mean that all was sent."""

    def attacks(self) -> list[Attack]:
        """The programs that are started one after another, and what each sends."""

    def start(self, attack: Attack) -> Sending:
        """Start one of them."""

    def finish(self) -> Results:
        """When the target is down: what was measured. Raises RunFailedError when nothing was sent."""


def environment(*unset: str, **variables: str) -> dict[str, str | None]:
    """For a load generator: without a proxy, which would be measured instead of the target.

    Variables whose names begin with one of `unset` are taken away: they are options of a tool that nobody planned.
    """
    taken = {name for name in os.environ if unset and name.startswith(unset)}
    absent: dict[str, str | None] = dict.fromkeys([*taken, *_PROXIES])
    return {**absent, "NO_PROXY": "*", "no_proxy": "*", **variables}


def given(content: bytes) -> IO[bytes]:
    """A program's standard input. It has no name that could be left behind: requests may hold credentials."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by who starts the program
    file.write(content)
    file.seek(0)
    return file


def headers(job: Job) -> dict[str, list[str]]:
    """The request's headers that are the same each time."""
    drawn = {name.lower() for name in job.draws}
    found: Mapping[str, list[str]] = job.planned.request.get("header", {})
    return {name: values for name, values in found.items() if name.lower() not in drawn}


def one_line(values: Mapping[str, list[str]]) -> dict[str, str]:
    """Headers for tools that take one value of each."""
    return {name: ", ".join(each) for name, each in values.items()}


def compress(sources: list[Path], destination: Path) -> None:
    """Files one behind the other, zstd compressed with a checksum; each is removed as soon as it is read."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=1)
    with destination.open("wb") as output, compressor.stream_writer(output, closefd=False) as writer:
        for source in sources:
            with source.open("rb") as file:
                while part := file.read(1 << 20):
                    writer.write(part)
            source.unlink()


def compress_output(program: Program, destination: Path) -> None:
    """What a program prints, likewise. Raises LoadstoneError when the disk is full."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=1)
    try:
        with destination.open("wb") as output:
            compressor.copy_stream(program.stdout, output, read_size=1 << 18)
    except OSError as error:
        program.stop()
        raise LoadstoneError(f"{destination} cannot be written: {error.strerror}") from None
    except BaseException:
        program.stop()
        raise
