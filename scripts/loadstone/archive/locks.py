"""Locks that the kernel releases when their holder dies: one attack at a time per machine, one workflow per folder."""

import fcntl
import getpass
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from loadstone.errors import LoadstoneError

# The same for every user and checkout of the machine, whatever their TMPDIR. Only tests that measure beside each other
# set the variable.
_FOLDER = Path(os.environ.get("LOADSTONE_LOCKS") or "/tmp")  # noqa: S108 - opened without following links
MACHINE_LOCK = _FOLDER / "loadstone.attack.lock"
# What one sweep has prepared must not be there while another measures. Taken before the machine's own.
PREPARED_LOCK = _FOLDER / "loadstone.prepared.lock"
MEASURES = "is measuring an external target"  # what its holder does
_POLL_S = 0.2


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: `text` is for people; `who` is the same for all runs of one sweep."""

    who: object
    text: str


@contextmanager
def exclusive(
    purpose: str,
    log: Callable[[str], None],
    path: Path = MACHINE_LOCK,
    limit_s: float = math.inf,
    *,
    does: str = "holds this machine",
    while_waiting: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Hold a lock; yields its descriptor. While another holds it, waits and logs who that is and what it `does`.

    `while_waiting` is called between attempts. Raises LoadstoneError after `limit_s`.

    The kernel releases the lock when the last copy of the descriptor is closed, so pass it on to every process that
    must have ended before the next attack.
    """
    waiting, given_up = Waiting(lambda text: log(WaitLine(text))), time.monotonic() + limit_s
    while isinstance(taken := _try(purpose, path), Holder):
        waiting.say(taken.who, f"{taken.text} {does}")
        while_waiting()
        if time.monotonic() > given_up:
            raise LoadstoneError(f"gave up waiting: {taken.text} still {does}")
        time.sleep(_POLL_S)
    try:
        yield taken
    finally:
        os.close(taken)


def is_held(path: Path) -> bool:
    """Whether anybody holds a lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def hold(purpose: str, path: Path) -> int:
    """Hold a lock until this process ends. Raises LoadstoneError that names the holder when it is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    taken = _try(purpose, path)
    if isinstance(taken, Holder):
        raise LoadstoneError(f"{taken.text} is running here; wait until it ends, or stop it")
    return taken


def _try(purpose: str, path: Path) -> "int | Holder":
    """The lock's descriptor, or who holds it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _same_file(descriptor, path):
            os.close(descriptor)
            return Holder("leaving", "another process that is about to end")
        holder = {
            "pid": os.getpid(),
            "user": user(),
            "purpose": purpose,
            "folder": str(Path.cwd()),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
    except BlockingIOError:
        who = _describe(descriptor)
        os.close(descriptor)
        return who
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def user() -> str:
    """The user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in many containers
        return f"user {os.getuid()}"


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
    """Whether the locked file still has this name: temporary files may have been cleaned up."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _describe(descriptor: int) -> Holder:
    try:
        holder = json.loads(os.pread(descriptor, 10_000, 0))
        text = "{purpose} by {user} (process {pid} in {folder}, since {since})".format(**holder)
        return Holder((holder["user"], holder["folder"]), text)
    except (ValueError, KeyError, TypeError):
        return Holder("unknown", "somebody else")


_FIRST_S, _LONGEST_S = 60.0, 3600.0


class WaitLine(str):
    """A log line that is outdated as soon as another follows: ``waiting: `` and the `reason`."""

    reason: str

    def __new__(cls, reason: str) -> "WaitLine":
        line = super().__new__(cls, f"waiting: {reason}")
        line.reason = reason
        return line


class Waiting:
    """The log lines of one wait; `clock` gives seconds."""

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._who: object = None
        self._since = self._next = self._pause_s = 0.0

    def over(self) -> bool:
        """The wait is over; the next line begins another. Returns whether anything was logged."""
        waited, self._who = self._who is not None, None
        return waited

    def say(self, who: object, text: str) -> None:
        """Call this regularly: `text` is logged when `who` has changed, else at growing intervals."""
        now = self._clock()
        if self._who is None:
            self._since = now
        if who != self._who:
            self._pause_s = _FIRST_S
        elif now < self._next:
            return
        else:
            self._pause_s = min(2 * self._pause_s, _LONGEST_S)
            text += f" (for {(now - self._since) / 60:.0f} min)"
        self._who, self._next = who, now + self._pause_s
        self._log(text)
