"""Where a site can be published: what every destination can do, a folder, and S3-compatible storage.

Names are relative to the destination, with ``/``. The third kind, a branch of a git repository, is in ``branch.py``.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loadstone.archive import locks
from loadstone.archive.durable import sync
from loadstone.errors import LoadstoneError
from loadstone.publish import s3
from loadstone.publish.s3 import each
from loadstone.publish.site import publications
from loadstone.report.site_layout import content_type


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


class OpenDestination(Protocol):
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

    def opened(self, *, dry_run: bool) -> AbstractContextManager[OpenDestination]:
        """Reach it; `dry_run`: nothing is changed, neither there nor here."""


# Inside the destination, so that it is on the same disk.
_WORK = ".loadstone"


class Folder:
    """A folder; made when it is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"the folder {self._path}"

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator["_FolderPlace"]:  # noqa: ARG002 - only `begin` changes anything
        if self._path.exists() and not self._path.is_dir():
            raise LoadstoneError(f"{self._path} is not a folder")
        place = _FolderPlace(self._path)
        try:
            yield place
        finally:
            place.end()


class _FolderPlace:
    def __init__(self, root: Path) -> None:
        self._root, self._work = root, root / _WORK
        self._lock: int | None = None

    def begin(self) -> None:
        self._work.mkdir(parents=True, exist_ok=True)
        self._lock = locks.hold("publish", self._work / "lock")
        for left in self._work.glob("*.tmp"):  # by one that was killed
            left.unlink()

    def end(self) -> None:
        if self._lock is not None:
            shutil.rmtree(self._work, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        found = (path for path in (self._root / folder).rglob("*") if path.is_file())
        return {path.relative_to(self._root).as_posix(): path.stat().st_size for path in found}

    def present(self, names: Collection[str]) -> set[str]:
        return {name for name in names if os.path.lexists(self._root / name)}

    def is_empty(self) -> bool:
        return not self._root.is_dir() or all(path.name.startswith(".") for path in self._root.iterdir())

    def write(self, files: Sequence[Write]) -> None:
        folders = set()
        for number, file in enumerate(files):
            target, temporary = self._root / file.name, self._work / f"{number}.tmp"
            target.parent.mkdir(parents=True, exist_ok=True)
            self._fill(temporary, file)
            temporary.replace(target)
            folders.add(target.parent)
        for folder in folders:
            sync(folder)

    def _fill(self, temporary: Path, file: Write) -> None:
        if file.copy_of is not None:
            source = self._root / file.copy_of
            try:  # what is published is never written again, so two publications may share it
                os.link(source, temporary)
                return
            except OSError:
                file = Write(file.name, source)
        if isinstance(file.content, Path):
            shutil.copyfile(file.content, temporary)
        else:
            temporary.write_bytes(file.read())
        temporary.chmod(0o644)
        sync(temporary)

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        for name in files:
            (self._root / name).unlink(missing_ok=True)
        for name in folders:
            if (self._root / name).is_dir():
                shutil.rmtree(self._root / name)

    def finish(self, message: str) -> None:
        """Nothing is left to do: each file was seen as soon as it was written."""


if TYPE_CHECKING:
    from pyarrow import fs

_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"


class Bucket:
    """A bucket, or what lies below a prefix of it. `endpoint` is an address; without one it is Amazon's."""

    def __init__(self, bucket: str, prefix: str = "", endpoint: str | None = None, region: str | None = None) -> None:
        self._bucket, self._prefix = bucket, prefix.strip("/")
        self._endpoint, self._region = endpoint, region

    @property
    def name(self) -> str:
        return f"the bucket {'/'.join(filter(None, (self._bucket, self._prefix)))}"

    @contextmanager
    def opened(self, *, dry_run: bool) -> Iterator["_BucketPlace"]:  # noqa: ARG002 - dry_run changes nothing anyway
        with s3.connected(self._endpoint, self._region) as storage:
            yield _BucketPlace(storage, "/".join(filter(None, (self._bucket, self._prefix))))


class _BucketPlace:
    def __init__(self, storage: "fs.S3FileSystem", root: str) -> None:
        self._storage, self._root = storage, root

    def begin(self) -> None:
        """There is no lock; `publish` looks at the mark again before it leads anybody to what it wrote."""

    def read(self, name: str) -> bytes | None:
        try:
            with self._storage.open_input_file(self._at(name)) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        return content

    def sizes(self, folder: str) -> dict[str, int]:
        return {info.path.removeprefix(f"{self._root}/"): info.size for info in self._below(folder) if info.is_file}

    def present(self, names: Collection[str]) -> set[str]:
        listed = list(names)
        found = self._storage.get_file_info([self._at(name) for name in listed]) if listed else []
        return {name for name, info in zip(listed, found, strict=True) if info.is_file}

    def is_empty(self) -> bool:
        from pyarrow import fs  # noqa: PLC0415

        return not self._storage.get_file_info(fs.FileSelector(self._root, allow_not_found="/" in self._root))

    def write(self, files: Sequence[Write]) -> None:
        each(self._put, files)

    def _put(self, file: Write) -> None:
        if file.copy_of is not None:
            self._storage.copy_file(self._at(file.copy_of), self._at(file.name))
            return
        is_final = file.name.startswith(f"{publications.RELEASES}/") and file.name != publications.INDEX
        headers = {"Content-Type": content_type(file.name), "Cache-Control": _FOREVER if is_final else _REVALIDATE}
        content = file.read()
        # Closing the stream makes the object. One of more than 10 MiB whose parts could not all be written may be cut
        # short; nothing leads to it yet, and the next publication writes what is not of the right size again.
        with self._storage.open_output_stream(self._at(file.name), compression=None, metadata=headers) as stream:
            stream.write(content)

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        from pyarrow import fs  # noqa: PLC0415

        each(lambda name: self._storage.delete_file(self._at(name)), sorted(self.present(files)))
        for name in folders:
            inside = self._below(name)
            each(self._storage.delete_file, [info.path for info in inside if info.is_file])
            # The library keeps folders whose last file went as empty objects; some servers refuse to delete one before
            # those in it.
            left = {info.path for info in inside if not info.is_file} | {self._at(name)}
            for path in sorted(left, key=lambda path: path.count("/"), reverse=True):
                if self._storage.get_file_info(path).type != fs.FileType.NotFound:
                    self._storage.delete_dir(path)

    def finish(self, message: str) -> None:
        """Nothing is left to do: each object was seen as soon as it was written."""

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _below(self, folder: str) -> "list[fs.FileInfo]":
        from pyarrow import fs  # noqa: PLC0415

        found: list[fs.FileInfo] = self._storage.get_file_info(
            fs.FileSelector(self._at(folder), recursive=True, allow_not_found=True)
        )
        return found
