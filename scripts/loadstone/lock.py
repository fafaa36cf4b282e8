"""One attack at a time on a machine, whoever starts it and from whichever folder."""

import fcntl
import getpass
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

# The same for every user and checkout of the machine, whatever their TMPDIR.
MACHINE_LOCK = Path("/tmp/loadstone.attack.lock")  # noqa: S108 - opened without following links
_POLL_S = 0.2


@contextmanager
def exclusive(purpose: str, log: Callable[[str], None], path: Path = MACHINE_LOCK) -> Iterator[int]:
    """Hold the machine's attack lock; yields its descriptor. Waits, and says for whom, while another holds it.

    The kernel lets go of the lock when the last copy of the descriptor is closed, so hand it down to what must be
    gone before the next attack.
    """
    descriptor = _acquire(log, path)
    try:
        holder = {
            "pid": os.getpid(),
            "user": getpass.getuser(),
            "purpose": purpose,
            "folder": str(Path.cwd()),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(log: Callable[[str], None], path: Path) -> int:
    said = None
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same_file(descriptor, path):
                return descriptor
        except BlockingIOError:
            holder = _describe(descriptor)
            if holder != said:
                log(f"waiting: {holder}")
                said = holder
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(_POLL_S)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        try:  # without O_CREAT first: in a sticky folder the kernel refuses O_CREAT on another user's file
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(descriptor, 0o666)
            return descriptor
        except FileExistsError:
            continue


def _same_file(descriptor: int, path: Path) -> bool:
    """Whether the locked file still bears the name; a cleaner of temporary files may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _describe(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 10_000, 0))
        return "{purpose} of {user} (process {pid} in {folder}, since {since}) holds this machine".format(**holder)
    except (ValueError, KeyError, TypeError):
        return "another attack holds this machine"
