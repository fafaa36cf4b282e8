"""Writing files so that a name never refers to half a file, whatever is killed and when; opening and hashing them."""

import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

# Errors of file systems without hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

# Temporary files: of this module, and of tables.
_TEMPORARY = re.compile(r"\.([a-z0-9_]{8}|.+\.parquet\.[0-9]+)\.tmp", re.DOTALL)
_DAY_S = 24 * 3600


def write_new(path: Path, content: bytes) -> bool:
    """Write a new file, unless the name is taken: then the existing file stays. True when this call wrote it.

    Written under a temporary name in the same folder, fsynced, then linked, so it appears complete or not at all.
    """
    with _temporary(path) as temporary:
        temporary.write_bytes(content)
        sync(temporary)
        try:
            give_name(temporary, path)
        except FileExistsError:
            return False
    sync(path.parent)
    return True


def give_name(staged: Path, path: Path) -> None:
    """Give a complete file its name. Raises FileExistsError when that is taken. `staged` is then gone, or another link.

    Storage without hard links (SMB, most of FUSE) has no other operation that never replaces a file. There the name is
    checked before a rename, which is enough because our own writers wait for each other's locks.
    """
    try:
        os.link(staged, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        staged.rename(path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, which gets its name in one step at the end. Raises OSError when that is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(dir=path.parent, prefix=".", suffix=".tmp"))
    try:
        staged.chmod(0o755)
        yield staged
        staged.rename(path)
        sync(path.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def replace(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a derived file, replacing the former one in one step. `mode` applies from the first byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(path) as temporary:
        temporary.chmod(mode)
        temporary.write_bytes(content)
        temporary.replace(path)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_raw(path: Path) -> FileIO:
    """Open a regular file; anything else (a named pipe would block for ever) raises OSError without errno."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hexadecimal digits. Raises OSError."""
    with open_raw(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_temporary(folder: Path) -> None:
    """Remove a folder's temporary files that killed processes left: those that nobody wrote to for a day.

    By their age, since a process of another machine may be writing to one.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY.fullmatch(path.name):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > _DAY_S:
                    path.unlink()


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new temporary file in the same folder, hidden from scans; removed at the end unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    os.fchmod(descriptor, 0o644)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
