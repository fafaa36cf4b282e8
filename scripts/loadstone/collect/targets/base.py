"""The interface of targets, which is all that `loadstone.collect.run` uses; and the check of their identity.

`local` starts processes, `kubernetes` scales deployments. Before each run the variant must answer with its expected
response, so that no other server is measured (`identify`).
"""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

from loadstone.archive import Cell
from loadstone.archive.metadata import Metadata, parse_duration
from loadstone.errors import LoadstoneError
from loadstone.process import Minder

Log = Callable[[str], None]

_CONFIRMATIONS = 3
_LARGEST_BODY = 256 << 20

# Called with each phase of a run as it begins, a name of `loadstone.archive.run_records.PHASES`.
OnPhase = Callable[[str], None]


def ignore(_: str) -> None:
    """The default `OnPhase`."""


class RunFailedError(LoadstoneError):
    """A run failed for a reason that may not apply to the next one, and may be retried.

    `evidence` are texts that explain it, such as a cluster's warnings.
    """

    def __init__(self, text: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.evidence = evidence


@dataclass(frozen=True)
class Job:
    """Everything needed to collect one run; `logs` is the folder for the programs' output.

    `draws` are headers with values of which each request takes one; `script` is the user's own for k6, as declared.
    """

    cell: Cell
    run: int
    planned: Metadata
    target: Mapping[str, Any]
    minder: Minder
    logs: Path
    log: Log
    on_phase: OnPhase = ignore
    draws: Mapping[str, Sequence[str]] = field(default_factory=dict)
    script: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attack_log(self) -> Path:
        return self.logs / "attack.log"

    @property
    def timeout(self) -> str:
        return self.planned.timeout or "30s"

    @property
    def timeout_s(self) -> float:
        return parse_duration(self.timeout) or 30.0


@dataclass(frozen=True)
class ResourceSample:
    """CPU and memory in use at one moment. `scope` is ``namespace``, ``pod``, ``node`` or ``process``."""

    sampled_at: datetime
    scope: str
    name: str
    cpu_millicores: float | None
    memory_mib: float | None


class UnsampledError(LoadstoneError):
    """Some parts of a target could not be sampled; `samples` are those of the others."""

    def __init__(self, text: str, samples: Sequence[ResourceSample] = ()) -> None:
        super().__init__(text)
        self.samples = samples


class Target(Protocol):
    """One variant that is up and whose identity was checked."""

    @property
    def seen(self) -> dict[str, Any]:
        """For the run's record, from before the first request: its response, images, pods."""

    def check_alive(self) -> None:
        """Raise RunFailedError when it can't respond any more. Called often during the attack: it must be cheap."""

    def watch(self) -> None:
        """The attack begins: events from now on are `incidents`."""

    def incidents(self) -> list[dict[str, Any]]:
        """Events since `watch`: ``kind`` (``restart``, ``oom``, ...), ``object``, ``text`` and more."""

    def sample(self) -> list[ResourceSample]:
        """CPU and memory of its parts; called from a separate thread, the first time when the attack begins.

        What is measured between two calls is missing in the first result. Raises UnsampledError, always with the same
        text for the same reason, when something can't be sampled; that fails no run.
        """


# Brings the variant of a job up, and takes it down at the end.
Up = Callable[[Job], AbstractContextManager[Target]]


# --- identity --------------------------------------------------------------------------------------------------------


def identify(request: Mapping[str, Any], expect: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Send the request several times in a row: status, headers and body of the responses must be the expected ones.

    Returns the last response (status, headers that were checked, SHA-256 and length of the body). Raises RunFailedError
    when another server, or none, responds.
    """
    headers = {name: ", ".join(values) for name, values in request.get("header", {}).items()}
    content = request["body"].encode() if request.get("body") is not None else None
    for _ in range(_CONFIRMATIONS):
        try:
            status, found, body = ask(request["method"], request["url"], headers, content, timeout_s)
        except (OSError, HTTPException, ValueError) as error:
            raise RunFailedError(f"{request['url']} does not answer: {error}") from None
        seen = {
            "status": status,
            "headers": {name.lower(): found.get(name.lower()) for name in expect.get("headers", {})},
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "body_bytes": len(body),
        }
        if faults := [*_faults(seen, body, expect)]:
            raise RunFailedError(f"{request['url']} is not the expected server, nothing was sent: " + "; ".join(faults))
    return seen


def _faults(seen: Mapping[str, Any], body: bytes, expect: Mapping[str, Any]) -> Iterator[str]:
    if seen["status"] != expect["status"]:
        yield f"status {seen['status']} instead of {expect['status']}"
    for name, value in expect.get("headers", {}).items():
        if seen["headers"][name.lower()] != value:
            yield f"header {name}: {seen['headers'][name.lower()]!r} instead of {value!r}"
    if expect.get("body_sha256", seen["body_sha256"]) != seen["body_sha256"]:
        yield f"a body with SHA-256 {seen['body_sha256']} instead of {expect['body_sha256']}"
    if expect.get("body_contains", "").encode() not in body:
        yield f"a body without {expect['body_contains']!r}"


def ask(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    """Send one request, bypassing any configured proxy. Returns status, headers by lower-case name, body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310 - schema: http(s)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            return answer.status, _lower(answer.headers), _read(answer, timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lower(error.headers), _read(error, timeout_s)


def _read(answer: Any, timeout_s: float) -> bytes:
    """Read a body within the timeout; a server that sends byte by byte would otherwise hold the machine for ever."""
    deadline, body = time.monotonic() + timeout_s, bytearray()
    while part := answer.read1(1 << 16):
        body += part
        if time.monotonic() > deadline or len(body) > _LARGEST_BODY:
            raise TimeoutError(f"its body is not complete after {timeout_s:g} s and {len(body)} bytes")
    return bytes(body)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
