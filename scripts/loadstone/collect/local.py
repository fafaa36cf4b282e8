"""The local target: processes on this machine, started for one run, watched, and stopped whatever happens."""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

from loadstone.errors import LoadstoneError
from loadstone.metadata import parse_duration
from loadstone.process import Minder, Program

_POLL_S = 0.01
_CONFIRMATIONS = 3
_LARGEST_BODY = 256 << 20


class Target:
    """The processes of one variant while they run."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs

    def check_alive(self) -> None:
        """Raise LoadstoneError when a process has ended."""
        for name, program in self._programs.items():
            code = program.exit_code()
            if code is not None:
                raise LoadstoneError(
                    f"the process {name!r} ended (exit code {code}) while it was needed:\n{program.tail()}"
                )


@contextmanager
def running(target: Mapping[str, Any], variant: str, minder: Minder, logs: Path) -> Iterator[Target]:
    """The variant's processes, started in declared order and ready; stopped at the end, last first."""
    limit = time.monotonic() + (parse_duration(target.get("ready_timeout")) or 30.0)
    programs: dict[str, Program] = {}
    try:
        for name in target["variants"][variant].get("processes", []):
            declared = target["processes"][name]
            _require_free(name, declared["port"])
            programs[name] = Program(
                declared["command"], minder, logs / f"{name}.log", environment=declared.get("environment")
            )
            _wait_ready(name, declared["ready"], Target(programs), limit)
        yield Target(programs)
    finally:
        for program in reversed(programs.values()):
            program.stop()


def identify(request: Mapping[str, Any], expect: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Ask the target who it is, several times in a row: status, headers and body must be the expected ones.

    Returns what was seen (status, headers that were checked, SHA-256 and length of the body). Raises LoadstoneError
    when another server, or none, answers.
    """
    for _ in range(_CONFIRMATIONS):
        seen = _fingerprint(request, timeout_s)
        faults = []
        if seen["status"] != expect["status"]:
            faults.append(f"status {seen['status']} instead of {expect['status']}")
        for name, value in expect.get("headers", {}).items():
            if seen["headers"].get(name.lower()) != value:
                faults.append(f"header {name}: {seen['headers'].get(name.lower())!r} instead of {value!r}")
        if expect.get("body_sha256", seen["body_sha256"]) != seen["body_sha256"]:
            faults.append(f"a body with SHA-256 {seen['body_sha256']} instead of {expect['body_sha256']}")
        if expect.get("body_contains", "").encode() not in seen["body"]:
            faults.append(f"a body without {expect['body_contains']!r}")
        if faults:
            raise LoadstoneError(f"{request['url']} is not the expected server, nothing was sent: " + "; ".join(faults))
    kept = {name.lower(): seen["headers"][name.lower()] for name in expect.get("headers", {})}
    return {
        "status": seen["status"],
        "headers": kept,
        "body_sha256": seen["body_sha256"],
        "body_bytes": len(seen["body"]),
    }


def _fingerprint(request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    headers = {name: ", ".join(values) for name, values in request.get("header", {}).items()}
    body = request.get("body")
    try:
        status, answered, content = _ask(
            request["method"], request["url"], headers, None if body is None else body.encode(), timeout_s
        )
    except (OSError, HTTPException, ValueError) as error:
        raise LoadstoneError(f"{request['url']} does not answer: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    return {"status": status, "headers": answered, "body": content, "body_sha256": digest}


def _ask(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    """One request, past any configured proxy. Status, headers by lower-case name, body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310 - schema: http(s)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            return answer.status, _lower(answer.headers), _read(answer, timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lower(error.headers), _read(error, timeout_s)


def _read(answer: Any, timeout_s: float) -> bytes:
    """A body, all of it within the time; a server that drips bytes would otherwise hold the machine for ever."""
    deadline, body = time.monotonic() + timeout_s, bytearray()
    while part := answer.read1(1 << 16):
        body += part
        if time.monotonic() > deadline or len(body) > _LARGEST_BODY:
            raise TimeoutError(f"its body is not complete after {timeout_s:g} s and {len(body)} bytes")
    return bytes(body)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _wait_ready(name: str, url: str, target: Target, limit: float) -> None:
    why = "no answer yet"
    while time.monotonic() < limit:
        target.check_alive()
        try:
            status, _, _ = _ask("GET", url, {}, None, timeout_s=1.0)
            if status == HTTPStatus.OK:
                return
            why = f"status {status}"
        except (OSError, HTTPException) as error:
            why = str(error)
        time.sleep(_POLL_S)
    raise LoadstoneError(f"the process {name!r} was not ready in time: {url}: {why}")


def _require_free(name: str, port: int) -> None:
    """Refuse to measure somebody else's server: nothing may listen on the port before our process does."""
    for connection in _connections():
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1] == port:
            owner = f" by process {connection.pid}" if connection.pid else ""
            raise LoadstoneError(
                f"port {port} of the process {name!r} is already in use{owner}. End that one and start again: what is "
                "collected stays, and the campaign goes on. (Another port is another declaration, for which the open "
                "campaign would have to be given up.)"
            )


def _connections() -> list[Any]:
    try:
        return list(psutil.net_connections("tcp"))
    except psutil.AccessDenied:  # macOS shows the connections of others to root only
        return list(psutil.Process().net_connections("tcp"))
