"""Writing files so that a name never stands for half a content, whatever is killed and whenever."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_new(path: Path, content: bytes) -> bool:
    """Give `content` a name, unless the name is taken: the existing file wins. True when this call made it.

    Written beside, fsynced, then hard-linked, so it appears complete or not at all.
    """
    with _beside(path) as temporary:
        temporary.write_bytes(content)
        sync(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    sync(path.parent)
    return True


def replace(path: Path, content: bytes) -> None:
    """Write a derived file, replacing the former one in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path) as temporary:
        temporary.write_bytes(content)
        temporary.replace(path)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A fresh temporary name in the same folder, hidden from scans; gone at the end unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    os.fchmod(descriptor, 0o644)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
