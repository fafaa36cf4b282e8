"""What every destination can do. Names are relative to it, with ``/``."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Write:
    """A file that is to be at the destination under `name`: bytes, a file of this machine, or a copy of one there."""

    name: str
    content: bytes | Path | None = None
    copy_of: str | None = None

    @property
    def size(self) -> int:
        """Bytes that are transferred."""
        if self.content is None:
            return 0
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def read(self) -> bytes:
        """What is transferred."""
        assert self.content is not None
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


class Place(Protocol):
    """An open destination. Every method raises LoadstoneError or OSError."""

    def begin(self) -> None:
        """Be the only one who writes from here on, where the destination can tell."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder with their sizes, by name; empty where there is none."""

    def present(self, names: Collection[str]) -> set[str]:
        """Those of these files that are there."""

    def is_empty(self) -> bool:
        """Whether nothing is there, hidden files aside."""

    def write(self, files: Sequence[Write]) -> None:
        """Write files in any order; each appears whole or not at all, and is on the disk when this returns."""

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        """Remove folders with all that is in them, and files."""

    def finish(self, message: str) -> None:
        """Make readers see what was written, where they do not yet."""


class Destination(Protocol):
    """Where a site is published."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def opened(self, *, looking: bool) -> AbstractContextManager[Place]:
        """Reach it; `looking`: nothing is changed, neither there nor here."""
