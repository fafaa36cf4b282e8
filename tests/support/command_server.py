"""Starts Snakemake by a fork of a process that has imported it: `python -P command_server.py SOCKET`.

Over the socket come file descriptors (a command's output, and a socket on which its process id and exit code are told)
and what to run as JSON: arguments, folder, environment. Loadstone is not imported here: each command imports that of
its own checkout. `commands.py` is the client.
"""

import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

# What Snakemake and the library import of others in the process of a command.
import jinja2  # noqa: F401
import jsonschema  # noqa: F401
import nbformat  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import requests  # noqa: F401
import smart_open  # noqa: F401
import snakemake.cli
import snakemake.workflow
import urllib3  # noqa: F401
import yaml  # noqa: F401
import zstandard  # noqa: F401


def serve(control: socket.socket) -> None:
    """Returns in each command's process, ready to run it; the server's own ends here with its client."""
    running: dict[int, socket.socket] = {}
    woken, waker = socket.socketpair()
    for each in (woken, waker):
        each.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    while True:
        ready = [key.fileobj for key, _ in selector.select()]
        if woken in ready:
            woken.recv(4096)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    with running.pop(pid) as told:
                        told.send(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
        if control not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not message:
            os._exit(0)
        output, told = descriptors[0], socket.socket(fileno=descriptors[1])
        pid = os.fork()
        if pid == 0:
            selector.close()
            for each in (control, woken, waker, told, *running.values()):
                each.close()
            become(output, **json.loads(message))
            return
        os.close(output)
        running[pid] = told
        told.send(pid.to_bytes(4))


def become(output: int, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Make this process what one of the command line would be."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = arguments
    programs = Path(arguments[0]).parent
    sys.path.insert(0, str(programs))
    sys.executable = str(programs / "python")


if __name__ == "__main__":
    snakemake.cli.get_argument_parser()  # finds and imports Snakemake's plugins
    serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(snakemake.cli.main())
