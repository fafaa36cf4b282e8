"""The local target: processes on this machine, started for one run, watched, and always stopped."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import psutil

from loadstone.archive.metadata import parse_duration
from loadstone.collect.sampling import ProcessTree
from loadstone.collect.targets.base import Job, ResourceSample, RunFailedError
from loadstone.config.connection import Connection
from loadstone.process import Program

_POLL_S = 0.01


class LocalTarget:
    """The processes of one variant while they run."""

    def __init__(self, programs: Mapping[str, Program], seen: dict[str, Any]) -> None:
        self._programs = programs
        self._trees = [ProcessTree(name, program.pids) for name, program in programs.items()]
        self.seen = seen

    def check_alive(self) -> None:
        """Raise RunFailedError when a process has ended."""
        _check_alive(self._programs)

    def watch(self) -> None:
        """Local targets have no incidents: a process that ends fails the run."""

    def incidents(self) -> list[dict[str, Any]]:
        return []

    def sample(self) -> list[ResourceSample]:
        """CPU and memory of each declared process with its children."""
        return [sample for tree in self._trees for sample in tree.sample()]


@contextmanager
def running(job: Job) -> Iterator[LocalTarget]:
    """The variant's processes, started in declared order, ready and identified; stopped at the end, last first."""
    declared = job.target["variants"][job.cell.variant_dir]
    # A process is asked at its own address, by the protocol that it negotiates.
    connection = replace(job.connection, resolve=None, protocol=None)
    limit = time.monotonic() + (parse_duration(job.target.get("ready_timeout")) or 30.0)
    programs: dict[str, Program] = {}
    try:
        for name in declared.get("processes", []):
            process = job.target["processes"][name]
            _require_free(name, process["port"])
            programs[name] = Program(
                process["command"],
                job.supervisor,
                job.logs / f"{name}.log",
                environment=process.get("environment"),
                supervised=True,
            )
            _wait_ready(name, process["ready"], connection, programs, limit)
        from loadstone.collect.targets.identity import identify  # noqa: PLC0415 - as in `_wait_ready`

        identity = identify(job.planned.request, declared["expect"], job.timeout_s, job.connection)
        yield LocalTarget(programs, {"identity": identity})
    finally:
        for name, program in reversed(programs.items()):
            program.stop()
            if program.left:
                job.log(f"the process {name!r} had left others running, which were ended: {', '.join(program.left)}")


def _check_alive(programs: Mapping[str, Program]) -> None:
    for name, program in programs.items():
        code = program.exit_code()
        if code is not None:
            raise RunFailedError(
                f"the process {name!r} ended (exit code {code}) while it was needed:\n{program.tail()}"
            )


def _wait_ready(name: str, url: str, connection: Connection, programs: Mapping[str, Program], limit: float) -> None:
    # Its libraries are loaded while the process starts.
    from loadstone.collect.targets.identity import NO_RESPONSE, Request, ask  # noqa: PLC0415

    why = "no answer yet"
    while time.monotonic() < limit:
        _check_alive(programs)
        try:
            status = ask(Request("GET", url, {}), timeout_s=1.0, connection=connection).status
            if status == HTTPStatus.OK:
                return
            why = f"status {status}"
        except NO_RESPONSE as error:
            why = str(error)
        time.sleep(_POLL_S)
    raise RunFailedError(f"the process {name!r} was not ready in time: {url}: {why}")


def _require_free(name: str, port: int) -> None:
    """Raise RunFailedError when a process listens on the port already, which would be measured instead of ours."""
    for connection in _connections():
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1] == port:
            owner = f" by process {connection.pid}" if connection.pid else ""
            raise RunFailedError(
                f"port {port} of the process {name!r} is already in use{owner}. Stop that one and start again: "
                "collected runs are kept, and the campaign goes on. (To use another port you would have to give up the "
                "open campaign, because it was opened with this declaration.)"
            )


def _connections() -> list[Any]:
    try:
        return list(psutil.net_connections("tcp"))
    except psutil.AccessDenied:  # macOS shows the connections of others to root only
        return list(psutil.Process().net_connections("tcp"))
