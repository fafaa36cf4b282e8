"""Ends what a job, or one of its programs, leaves running. Run by `loadstone.process` as a separate program.

Without arguments it minds a job: it reads ``+<pgid>`` and ``-<pgid>`` lines from standard input. At the end of input
(the job has finished or was killed, even by SIGKILL) every group still listed gets SIGTERM and, if it is still there
after a grace time, SIGKILL. Inherited descriptors stay open until then, so that a lock is held as long as any process
of the job runs. Groups listed as ``*<pgid>`` are those of supervisors, which end by themselves.

With a command as arguments it is its supervisor (Linux only): the command is its child, and whatever that starts stays
below it, also in other sessions, because orphans become children of the nearest "child subreaper" (prctl(2)). It ends
all of them when the command ends or it gets SIGTERM, then ends as the command did. The descriptor in its first argument
receives the command's process id, then the names of processes that had left the command's session, a line each, and at
last `ENDED`: without it this process was killed, and the command may still run.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Collection

GRACE_S = 3.0
ENDED = "ended"
_POLL_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make orphans of this process' descendants its children; does nothing where the kernel can't."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> dict[int, tuple[str, int]]:
    """Name and session of each child of this process, by its id, without those that have ended."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc") if sys.platform == "linux" else ())):
        with contextlib.suppress(OSError):
            name, state, parent, session = _stat(pid)
            if parent == os.getpid() and state not in "ZX":
                found[pid] = name, session
    return found


def end_children(spared: Collection[int] = (), session: int = 0) -> list[str]:
    """End all other children of this process and, as these become its children, theirs.

    SIGTERM, and SIGKILL after a grace time; gives up after twice that time, as on processes of another user. Returns
    names and ids of those that were not in `session`.
    """
    found: dict[int, tuple[str, int]] = {}
    since_s = time.monotonic()
    while left := {pid: child for pid, child in children().items() if pid not in spared}:
        passed_s = time.monotonic() - since_s
        if passed_s > 2 * GRACE_S:
            break
        for pid in left:
            if passed_s > GRACE_S or pid not in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL if passed_s > GRACE_S else signal.SIGTERM)
        found |= left
        time.sleep(_POLL_S)
        for pid in found:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
    return [
        f"{name} (process {pid}{', which could not be ended' if pid in left else ''})"
        for pid, (name, of) in found.items()
        if of != session
    ]


def _stat(pid: int) -> tuple[str, str, int, int]:
    """Name, state, parent and session of a process. Raises OSError when there is none."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes long to load
        name, _, rest = file.read().partition("(")[2].rpartition(")")
    state, parent, _, session = rest.split()[:4]
    return name, state, int(parent), int(session)


def _supervises(supervisor: int) -> bool:
    with contextlib.suppress(OSError):
        return _stat(supervisor)[1] not in "ZX"
    return False


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _mind() -> None:
    """Read until the job is gone, then end its process groups."""
    groups: dict[int, bool] = {}  # whether it is a supervisor's
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "-":
            groups.pop(group, None)
        else:
            groups[group] = line[0] == "*"
    for group in groups:
        _signal(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while any(_supervises(group) for group in groups if groups[group]) or (
        time.monotonic() < deadline and any(map(_alive, groups))
    ):
        time.sleep(_POLL_S)
    for group in groups:
        _signal(group, signal.SIGKILL)


def _supervise(report: int, command: list[str]) -> None:
    """Run the command, and end everything that is left of it."""
    os.set_inheritable(report, False)
    adopt_orphans()
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        program = os.posix_spawn(
            command[0], command, os.environ, setsid=True, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
        )
    except OSError as error:
        sys.exit(f"{command[0]} can't be started: {error.strerror}")

    def end(*_: object) -> None:
        _signal(program, signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    signal.signal(signal.SIGALRM, lambda *_: _signal(program, signal.SIGKILL))
    for number in ending:
        signal.signal(number, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    os.write(report, b"%d\n" % program)
    os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)  # not reaped, so that nobody else gets its id
    signal.pthread_sigmask(signal.SIG_BLOCK, {*ending, signal.SIGALRM})
    _signal(program, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    if left := end_children(session=program):
        print("ended what it had left running:", ", ".join(left), file=sys.stderr, flush=True)
    with contextlib.suppress(BrokenPipeError):  # the job was killed
        os.write(report, "\n".join([*left, ENDED]).encode())
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1:]:
        _supervise(int(sys.argv[1]), sys.argv[2:])
    else:
        _mind()
