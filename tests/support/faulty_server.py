"""The server of `faulty_storage`: started with the folder behind, where to mount it, and the file of its faults."""

import errno
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import mfusepy


class _Faulty(mfusepy.Operations):
    """Paths begin with a slash; an OSError is what the caller gets."""

    use_ns = True

    def __init__(self, behind: Path, faults: Path) -> None:
        self._behind, self._faults = behind, faults
        self._set: dict[str, Any] = {}
        self._written = 0

    def _real(self, path: str) -> Path:
        return self._behind / path.removeprefix("/")

    def _change(self, *, takes_space: bool, new: bool = False) -> None:
        """Every change asks whether it may be."""
        wanted = json.loads(self._faults.read_text())
        if wanted != self._set:
            self._set, self._written = wanted, 0
        if wanted.get("read_only"):
            raise OSError(errno.EROFS, "")
        self._written += new if wanted.get("files") else takes_space
        if takes_space and self._written >= wanted.get("full_at", sys.maxsize):
            raise OSError(errno.ENOSPC, "")

    def access(self, path: str, amode: int) -> int:
        if not os.access(self._real(path), amode, follow_symlinks=False):
            raise OSError(errno.EACCES, "")
        return 0

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = self._real(path).lstat()
        names = ("mode", "nlink", "size", "uid", "gid")
        times = {f"st_{name}": getattr(found, f"st_{name}_ns") for name in ("atime", "mtime", "ctime")}
        return {f"st_{name}": getattr(found, f"st_{name}") for name in names} | times

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self._real(path))]

    def readlink(self, path: str) -> str:
        return str(self._real(path).readlink())

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._real(path))
        names = ("bavail", "bfree", "blocks", "bsize", "favail", "ffree", "files", "flag", "frsize", "namemax")
        return {f"f_{name}": getattr(found, f"f_{name}") for name in names}

    def mkdir(self, path: str, mode: int) -> int:
        self._change(takes_space=True)
        self._real(path).mkdir(mode)
        return 0

    def rmdir(self, path: str) -> int:
        self._change(takes_space=False)
        self._real(path).rmdir()
        return 0

    def unlink(self, path: str) -> int:
        self._change(takes_space=False)
        self._real(path).unlink()
        return 0

    def symlink(self, target: str, source: str) -> int:
        self._change(takes_space=True)
        self._real(target).symlink_to(source)
        return 0

    def rename(self, old: str, new: str) -> int:
        self._change(takes_space=False)
        self._real(old).rename(self._real(new))
        return 0

    def link(self, target: str, source: str) -> int:
        self._change(takes_space=True)
        if not self._set.get("links", True):
            raise OSError(errno.EOPNOTSUPP, "")
        os.link(self._real(source), self._real(target))
        return 0

    def chmod(self, path: str, mode: int) -> int:
        self._change(takes_space=False)
        self._real(path).chmod(mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        self._change(takes_space=False)
        os.chown(self._real(path), uid, gid)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        self._change(takes_space=False)
        os.utime(self._real(path), ns=times or (time.time_ns(), time.time_ns()))
        return 0

    def open(self, path: str, flags: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self._change(takes_space=False)
        return os.open(self._real(path), flags)

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._change(takes_space=True, new=True)
        return os.open(self._real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._change(takes_space=True)
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._change(takes_space=False)
        os.truncate(self._real(path) if fh is None else fh, length)
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        os.fsync(fh)
        return 0


if __name__ == "__main__":
    uncached = dict.fromkeys(("attr_timeout", "entry_timeout", "negative_timeout"), 0)
    faulty = _Faulty(Path(sys.argv[1]), Path(sys.argv[3]))
    mfusepy.FUSE(faulty, sys.argv[2], foreground=True, nothreads=True, default_permissions=True, **uncached)
