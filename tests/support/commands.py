"""Commands of Snakemake that run to their end: forks of one process that has imported what each imports.

That is a second of processor time less for each. `Checkout.start` starts real ones, for tests that kill them.
"""

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_SENDING = threading.Lock()


@functools.cache
def _server(network: str) -> socket.socket:
    """Where the one of this process and network namespace listens; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("command_server.py")), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"},
        )
    return ours


def _network() -> str:
    """The network namespace of this thread: some tests have one of their own."""
    own = Path("/proc/thread-self/ns/net")
    return str(own.readlink()) if own.exists() else ""


def run(checkout: Path, arguments: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Exit code (negative: the signal that ended it) and output, both streams as one; killed after `timeout_s`."""
    command = [str(checkout / ".venv/bin/snakemake"), *arguments]
    request = {"arguments": command, "folder": str(checkout), "environment": dict(os.environ)}
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    with ours, theirs, os.fdopen(reading, "rb", buffering=0) as output:
        try:
            with _SENDING:
                socket.send_fds(_server(_network()), [json.dumps(request).encode()], [writing, theirs.fileno()])
        finally:
            os.close(writing)
        theirs.close()
        pid = int.from_bytes(ours.recv(4))
        assert pid, "the server of commands has ended"
        said = bytearray()
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
                assert ready, f"it takes longer than {timeout_s} s: {said.decode(errors='replace')}"
                if not (part := output.read(1 << 16)):
                    break
                said += part
            ours.settimeout(max(1.0, deadline - time.monotonic()))
            return int.from_bytes(ours.recv(4), signed=True), said.decode()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            raise
