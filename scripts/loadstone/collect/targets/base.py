"""What a run is made against: a variant that is up, watched while it is attacked.

`local` starts processes, `kubernetes` scales deployments; the sequence of a run (`loadstone.collect.run`) knows only
this. Each is asked who it is before its run, so that never another server is measured (`identify`).
"""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
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
    """For those who need not know."""


class RunFailedError(LoadstoneError):
    """A run could not be made, for a reason that need not hold for the next one: it may be tried again later.

    `evidence` explains it: texts such as a cluster's warnings.
    """

    def __init__(self, text: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.evidence = evidence


@dataclass(frozen=True)
class Job:
    """What collecting one run needs to know; `logs` is the folder for what programs print.

    `draws` are headers of which each request takes one of the values; `script` is the user's own for k6, as declared.
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
    """What something used at one moment. `scope` is ``namespace``, ``pod``, ``node`` or ``process``."""

    sampled_at: datetime
    scope: str
    name: str
    cpu_millicores: float | None
    memory_mib: float | None


class UnsampledError(LoadstoneError):
    """What some parts of a target use can't be known now; `samples` is what could be."""

    def __init__(self, text: str, samples: Sequence[ResourceSample] = ()) -> None:
        super().__init__(text)
        self.samples = samples


class Target(Protocol):
    """One variant that is up and has answered as itself."""

    @property
    def seen(self) -> dict[str, Any]:
        """What was seen of it before the first request, for the run's record: its answer, images, pods."""

    def check_alive(self) -> None:
        """Raise RunFailedError when it can't answer any more. Called often, while the attack runs: it must be cheap."""

    def watch(self) -> None:
        """The attack begins: what happens from now on are `incidents`."""

    def incidents(self) -> list[dict[str, Any]]:
        """What happened to it since `watch`: ``kind`` (``restart``, ``oom``, ...), ``object``, ``text`` and more."""

    def sample(self) -> list[ResourceSample]:
        """What its parts use now; called from a thread of its own, the first time as the attack begins.

        What is measured between two moments is missing in the first answer. Raises UnsampledError, always with the same
        text for the same reason, when something can't be known; that fails no run.
        """


# Brings the variant of a job up, and takes it down at the end.
Up = Callable[[Job], AbstractContextManager[Target]]


# --- identity --------------------------------------------------------------------------------------------------------


def identify(request: Mapping[str, Any], expect: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Ask the target who it is, several times in a row: status, headers and body must be the expected ones.

    Returns what was seen (status, headers that were checked, SHA-256 and length of the body). Raises RunFailedError
    when another server, or none, answers.
    """
    for _ in range(_CONFIRMATIONS):
        seen = _fingerprint(request, timeout_s)
        faults = _faults(seen, expect)
        if faults:
            raise RunFailedError(f"{request['url']} is not the expected server, nothing was sent: " + "; ".join(faults))
    kept = {name.lower(): seen["headers"][name.lower()] for name in expect.get("headers", {})}
    return {
        "status": seen["status"],
        "headers": kept,
        "body_sha256": seen["body_sha256"],
        "body_bytes": len(seen["body"]),
    }


def _faults(seen: Mapping[str, Any], expect: Mapping[str, Any]) -> list[str]:
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
    return faults


def _fingerprint(request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    headers = {name: ", ".join(values) for name, values in request.get("header", {}).items()}
    body = request.get("body")
    try:
        status, answered, content = ask(
            request["method"], request["url"], headers, None if body is None else body.encode(), timeout_s
        )
    except (OSError, HTTPException, ValueError) as error:
        raise RunFailedError(f"{request['url']} does not answer: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    return {"status": status, "headers": answered, "body": content, "body_sha256": digest}


def ask(
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
