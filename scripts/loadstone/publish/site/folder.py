"""A folder as destination: of this machine, or mounted. Files are renamed into place, one after another."""

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadstone.archive import locks
from loadstone.archive.durable import sync
from loadstone.errors import LoadstoneError
from loadstone.publish.site.destination import Write

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
    def opened(self, *, looking: bool) -> Iterator["_FolderPlace"]:  # noqa: ARG002 - only `begin` changes anything
        if self._path.exists() and not self._path.is_dir():
            raise LoadstoneError(f"{self._path} is no folder")
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
