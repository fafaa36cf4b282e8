"""A network of its own for one test, in which the addresses of pods and Services are this machine's.

A server on 0.0.0.0 answers there at every pod's address and at every Service's; kube-proxy is absent, so a Service must
use the same port as its pods. Needs root.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator

from cluster.control_plane import POD_IPS, SERVICE_IPS

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)


class NoNetworkError(Exception):
    """This user can't make networks."""


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """This thread, and the processes and threads that it starts, are in a new network inside of `with`."""
    if shutil.which("ip") is None:
        raise NoNetworkError("ip is not on PATH (Debian: apt-get install iproute2)")
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if _libc.unshare(_NEW_NETWORK):
            raise NoNetworkError(f"no network namespace can be made here: {os.strerror(ctypes.get_errno())}")
        try:
            for command in (
                "ip link set lo up",
                f"ip route add local {POD_IPS} dev lo",
                f"ip route add local {SERVICE_IPS} dev lo",
            ):
                subprocess.run(command.split(), check=True)
            yield
        finally:
            assert _libc.setns(before, _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(before)
