"""How a run's files get into the archive: staged beside their final names, flushed to the disk, then given these.

A collected run is sealed first: a sealed staging folder holds a complete run; if the job dies before all links are
made, the next one finishes them. An unsealed one is what an interrupted attack left, and is thrown away. The main
results are linked last: they are what makes a run collected. (An import links single files: what is interrupted is
planned again.)
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
    """The hidden folder beside a cell's files in which one run is prepared."""

    def __init__(self, cell: Cell, run: int) -> None:
        self.cell = cell
        self.run = run
        self.path = cell.path / f".{run}.part"

    def prepare(self) -> None:
        """An empty folder; what an interrupted attack left in it is removed."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()

    def seal(self, kinds: dict[str, Path]) -> None:
        """Name the run's files (suffix -> staged file), add their checksums, and flush all to the disk."""
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
        """Whether a complete run waits here for its links."""
        return (self.path / _SEAL).exists()

    def publish(self, log: Callable[[str], None]) -> None:
        """Link every file to its final name, the main results last. Repeatable; an existing run wins as a whole."""
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
        """Give one staged file its final name; False when that is taken: an existing file wins."""
        try:
            give_name(self.path / name, self.cell.path / name)
        except FileExistsError:
            return False
        return True

    def discard(self) -> None:
        """Remove the staging folder; what was linked stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _set_aside(self, leftover: Path, log: Callable[[str], None]) -> None:
        """Keep a file of an earlier collection, whose results its owner has removed, without mixing it with ours."""
        folder = self.cell.path / "_set_aside"
        folder.mkdir(exist_ok=True)
        kept = folder / f"{leftover.name}.{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}"
        leftover.rename(kept)
        log(f"{leftover.name} belonged to results that no longer exist; kept as {kept.relative_to(self.cell.path)}")


def checksums(sums: Mapping[str, str]) -> str:
    """What ``<run>.sha256`` holds of files with these SHA-256, by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def read_checksums(path: Path) -> list[tuple[str, str] | None]:
    """Name and SHA-256 of each line of such a file, None for a line that is no checksum. Raises OSError."""
    with open_raw(path) as file:
        content = file.read(_LARGEST_BYTES)
    lines = map(_CHECKSUM.fullmatch, content.decode("utf-8", "surrogateescape").splitlines())
    return [line and (line[2], line[1].lower()) for line in lines]


def _is_main(file: Path) -> bool:
    """Whether a file is what makes its run collected."""
    named = parse_name(file.name)
    return named is not None and (named.kind, named.stream) == ("results", MAIN_STREAM)
