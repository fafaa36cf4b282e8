"""Ends the process groups of a job that died. Run by `loadstone.process` as a separate program.

Reads ``+<pgid>`` and ``-<pgid>`` lines from standard input. At the end of input (the job has finished or was killed,
even by SIGKILL) every group still listed gets SIGTERM and, if it is still there after a grace time, SIGKILL. Inherited
descriptors stay open until then, so that a lock is held as long as any process of the job runs.
"""

import contextlib
import os
import signal
import sys
import time

GRACE_S = 3.0


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def main() -> None:
    """Read until the job is gone, then end its process groups."""
    groups = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        _signal(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and any(_alive(group) for group in groups):
        time.sleep(0.02)
    for group in groups:
        _signal(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
