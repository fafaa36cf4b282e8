"""How a run's files get into the archive: written to a staging folder, flushed to the disk, then linked.

A collected run is sealed first: a sealed staging folder holds a complete run; if the job dies before all links are
made, the next one finishes them. An unsealed folder was left by an interrupted attack and is removed. The main results
are linked last, because they make a run collected. (An import links single files; after an interruption it is planned
again.)
"""

import re
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from loadstone.archive import MAIN_STREAM, Cell, parse_name, scan_cell
from loadstone.archive.durable import give_name, open_raw, sha256_of, sync

_SEAL = "SEALED"
_CHECKSUM = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")
_LARGEST_BYTES = 1 << 20


class Staging:
    """The hidden folder in a cell's folder in which one run is prepared."""

    def __init__(self, cell: Cell, run: int) -> None:
        self.cell = cell
        self.run = run
        self.path = cell.path / f".{run}.part"

    def prepare(self) -> None:
        """Make the folder empty; what an interrupted attack left in it is removed."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()

    def seal(self, kinds: dict[str, Path]) -> None:
        """Name the run's files (suffix -> staged file), add their checksums, and flush everything to the disk."""
        for suffix, staged in kinds.items():
            staged.replace(self.path / f"{self.run}{suffix}")
        for leftover in self.path.iterdir():
            if parse_name(leftover.name) is None:
                leftover.unlink()
        sums = {file.name: sha256_of(file) for file in sorted(self.path.iterdir())}
        (self.path / f"{self.run}.sha256").write_text(checksums(sums))
        for file in self.path.iterdir():
            sync(file)
        sync(self.path)
        (self.path / _SEAL).touch()
        sync(self.path / _SEAL)
        sync(self.path)

    def is_sealed(self) -> bool:
        """Whether the folder holds a complete run that is not linked yet."""
        return (self.path / _SEAL).exists()

    def publish(self, log: Callable[[str], None]) -> None:
        """Link every file to its final name, the main results last. Repeatable; an existing run stays as it is."""
        staged = sorted(file for file in self.path.iterdir() if file.name != _SEAL)
        staged.sort(key=_is_main)
        if self.run not in scan_cell(self.cell).collected():
            for file in staged:
                final = self.cell.path / file.name
                if final.exists() and not final.samefile(file):
                    self._set_aside(final, log)
                if not final.exists():
                    give_name(file, final)
            sync(self.cell.path)
        self.discard()

    def link(self, name: str) -> bool:
        """Link one staged file to its final name; False when that is taken: the existing file stays."""
        try:
            give_name(self.path / name, self.cell.path / name)
        except FileExistsError:
            return False
        return True

    def discard(self) -> None:
        """Remove the staging folder; what was linked stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _set_aside(self, leftover: Path, log: Callable[[str], None]) -> None:
        """Move a file of an earlier collection, whose results its owner has removed, out of the new run's way."""
        folder = self.cell.path / "_set_aside"
        folder.mkdir(exist_ok=True)
        kept = folder / f"{leftover.name}.{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"
        leftover.rename(kept)
        log(f"{leftover.name} belonged to results that no longer exist; kept as {kept.relative_to(self.cell.path)}")


def checksums(sums: Mapping[str, str]) -> str:
    """The content of ``<run>.sha256``, from file names and their SHA-256."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def read_checksums(path: Path) -> list[tuple[str, str] | None]:
    """Name and SHA-256 of each line of such a file, None for a line that is not a checksum. Raises OSError."""
    with open_raw(path) as file:
        content = file.read(_LARGEST_BYTES)
    lines = map(_CHECKSUM.fullmatch, content.decode("utf-8", "surrogateescape").splitlines())
    return [line and (line[2], line[1].lower()) for line in lines]


def _is_main(file: Path) -> bool:
    """Whether a file has the main results of its run."""
    named = parse_name(file.name)
    return named is not None and (named.kind, named.stream) == ("results", MAIN_STREAM)
