"""Where a site can be published: what every destination can do, a folder, and S3-compatible storage.

Names are relative to the destination, with ``/``. The third kind, a branch of a git repository, is in ``branch.py``.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.archive import locks
from loadstone.archive.durable import sync
from loadstone.errors import LoadstoneError
from loadstone.publish import s3
from loadstone.publish.s3 import each
from loadstone.publish.site import publications
from loadstone.report.site_layout import content_type


@dataclass(frozen=True)
class Write:
    """A file to write at the destination: bytes, a file of this machine, or a copy of one that is there."""

    name: str
    content: bytes | Path | None = None
    copy_of: str | None = None

    @property
    def size(self) -> int:
        """Bytes to transfer."""
        if self.content is None:
            return 0
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def read(self) -> bytes:
        """The bytes to transfer."""
        assert self.content is not None
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


class Destination(Protocol):
    """Where a site is published. Every method but `opened` needs it open, and raises LoadstoneError or OSError."""

    name: str  # in messages

    def opened(self, *, dry_run: bool) -> AbstractContextManager[None]:
        """Connect; with `dry_run` nothing is changed, neither there nor here."""

    def begin(self) -> None:
        """Become the only writer, where the destination can lock; before the first change."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where nothing has this name."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder with their sizes, by name; empty where there is none."""

    def is_empty(self) -> bool:
        """Whether nothing is there, hidden files aside."""

    def write(self, files: Sequence[Write]) -> None:
        """Write files in any order; each appears complete or not at all, and is on the disk when this returns."""

    def remove(self, folders: Iterable[str], files: Iterable[str]) -> None:
        """Remove folders with all that is in them, and files; some may be gone already."""

    def finish(self, message: str) -> None:
        """Show readers what was written, where they do not see it yet."""


_WORK = ".loadstone"  # inside the destination, so that it is on the same disk


class Folder(Destination):
    """A folder; created if missing."""

    def __init__(self, path: Path) -> None:
        self.name = f"the folder {path}"
        self._root, self._work = path, path / _WORK

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator[None]:  # noqa: ARG002 - only `begin` changes anything
        if self._root.exists() and not self._root.is_dir():
            raise LoadstoneError(f"{self._root} is not a folder")
        with ExitStack() as self._at_end:
            yield

    def begin(self) -> None:
        self._at_end.callback(os.close, locks.hold("publish", self._work / "lock"))
        self._at_end.callback(shutil.rmtree, self._work, ignore_errors=True)
        for left in self._work.glob("*.tmp"):  # of a killed publication
            left.unlink()

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except IsADirectoryError:
            return b""  # the name is taken
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        found = (path for path in (self._root / folder).rglob("*") if path.is_file())
        return {path.relative_to(self._root).as_posix(): path.stat().st_size for path in found}

    def is_empty(self) -> bool:
        return not self._root.is_dir() or all(path.name.startswith(".") for path in self._root.iterdir())

    def write(self, files: Sequence[Write]) -> None:
        for number, file in enumerate(files):
            target, temporary = self._root / file.name, self._work / f"{number}.tmp"
            target.parent.mkdir(parents=True, exist_ok=True)
            self._fill(temporary, file)
            temporary.replace(target)
        for folder in {(self._root / file.name).parent for file in files}:
            sync(folder)

    def _fill(self, temporary: Path, file: Write) -> None:
        if file.copy_of is not None:
            source = self._root / file.copy_of
            with suppress(OSError):  # a published file is never written again, so two publications may share it
                os.link(source, temporary)
                return
            file = Write(file.name, source)
        if isinstance(file.content, Path):
            shutil.copyfile(file.content, temporary)
        else:
            temporary.write_bytes(file.read())
        temporary.chmod(0o644)
        sync(temporary)

    def remove(self, folders: Iterable[str], files: Iterable[str]) -> None:
        for name in files:
            (self._root / name).unlink(missing_ok=True)
        for name in folders:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._root / name)

    def finish(self, message: str) -> None:
        """Nothing is left to do: readers see each file as soon as it is written."""


_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"


class Bucket(Destination):
    """A bucket, or what lies below a prefix of it. `endpoint` is a URL; without one it is Amazon's."""

    def __init__(self, bucket: str, prefix: str = "", endpoint: str | None = None, region: str | None = None) -> None:
        self._root = f"{bucket}/{prefix.strip('/')}".rstrip("/")
        self.name = f"the bucket {self._root}"
        self._endpoint, self._region = endpoint, region

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator[None]:  # noqa: ARG002 - to connect changes nothing
        with s3.connected(self._endpoint, self._region) as storage:
            self._store = s3.Store(storage, self._root)
            yield

    def begin(self) -> None:
        """There is no lock; `publish` reads the record again before it leads readers to what it wrote."""

    def read(self, name: str) -> bytes | None:
        return self._store.read(name)

    def sizes(self, folder: str) -> dict[str, int]:
        return {f"{folder}/{name}": info.size for name, info in self._store.listing(folder).items()}

    def is_empty(self) -> bool:
        return self._store.is_empty()

    def write(self, files: Sequence[Write]) -> None:
        each(self._put, files)

    def _put(self, file: Write) -> None:
        if file.copy_of is not None:
            self._store.copy(file.copy_of, file.name)
            return
        is_final = file.name.startswith(f"{publications.RELEASES}/") and file.name != publications.INDEX
        headers = {"Content-Type": content_type(file.name), "Cache-Control": _FOREVER if is_final else _REVALIDATE}
        # One of more than 10 MiB whose parts could not all be written may be cut short; nothing leads to it yet, and
        # the next publication writes what is not of the right size again.
        self._store.write(file.name, file.read(), headers)

    def remove(self, folders: Iterable[str], files: Iterable[str]) -> None:
        each(self._store.remove, files)
        each(self._store.remove_folder, folders)

    def finish(self, message: str) -> None:
        """Nothing is left to do: readers see each object as soon as it is written."""
