"""Every call of the API server in its order, from its audit log; manifests/audit.yaml says with how much detail."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from cluster.api import wait_until


@dataclass(frozen=True)
class Call:
    """One call, timed by the API server's clock, which is this machine's.

    `body` is what was sent and `answer` the object that came back, where the policy keeps them.
    """

    started: datetime
    ended: datetime
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    user: str
    agent: str
    dry_run: bool
    body: dict[str, Any]
    answer: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        return 200 <= self.code < 300

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}".strip("/")
        return f"{self.started:%H:%M:%S.%f} {self.verb} {self.resource} {where} -> {self.code} ({self.agent})"


@dataclass
class PodLife:
    """When a pod was made, became Ready, was told to go, and was gone. None: not (yet)."""

    namespace: str
    name: str
    labels: dict[str, str]
    created: datetime
    ready: datetime | None = None
    deleted: datetime | None = None
    gone: datetime | None = None

    def is_there(self, moment: datetime) -> bool:
        return self.created <= moment and (self.gone is None or moment < self.gone)

    def is_ready(self, moment: datetime) -> bool:
        return self.ready is not None and self.ready <= moment and (self.deleted is None or moment < self.deleted)

    def is_terminating(self, moment: datetime) -> bool:
        return self.deleted is not None and self.deleted <= moment and self.is_there(moment)


class Recorder:
    """`mark` makes a call that is recorded with the given name."""

    def __init__(self, file: Path, mark: Callable[[str], None]) -> None:
        self.file = file
        self._mark = mark

    def all(self, since: datetime | None = None, namespaces: set[str] | None = None) -> list[Call]:
        """All calls up to now, in the order in which they arrived."""
        marker = f"mark-{uuid4()}"
        self._mark(marker)
        text = wait_until(lambda: text if marker in (text := self.file.read_text()) else "", "the audit log")
        calls = [_decode(json.loads(line)) for line in text.splitlines()]
        wanted = [
            call
            for call in calls
            if not call.name.startswith("mark-")
            and (since is None or call.started >= since)
            and (namespaces is None or call.namespace in namespaces)
        ]
        return sorted(wanted, key=lambda call: call.started)

    def writes(self, since: datetime | None = None, namespaces: set[str] | None = None) -> list[Call]:
        """Calls that changed something and were not made by the control plane itself."""
        return [call for call in self.all(since, namespaces) if call.succeeded and is_foreign(call) and is_write(call)]

    def replicas(self, namespaces: set[str]) -> list[tuple[datetime, str, int]]:
        """(when, namespace/deployment, replicas) each time that somebody set them; scaled or patched alike."""
        found: list[tuple[datetime, str, int]] = []
        last: dict[str, int] = {}
        for call in self.all(namespaces=namespaces):
            if call.resource not in ("deployments", "deployments/scale") or not call.succeeded or not is_write(call):
                continue
            name = f"{call.namespace}/{call.name}"
            count = 0 if call.verb == "delete" else call.answer.get("spec", {}).get("replicas", 0)
            if last.get(name) != count:
                found.append((call.ended, name, count))
                last[name] = count
        return found

    def pods(self, namespaces: set[str]) -> list[PodLife]:
        """The life of every pod."""
        lives: dict[tuple[str, str], PodLife] = {}
        for call in sorted(self.all(namespaces=namespaces), key=lambda call: call.ended):
            if call.resource.partition("/")[0] != "pods" or not call.succeeded or not is_write(call):
                continue
            for pod in call.answer.get("items") or [call.answer]:
                _note(lives, call, pod)
        return list(lives.values())


def is_write(call: Call) -> bool:
    return call.verb in ("create", "update", "patch", "delete", "deletecollection") and not call.dry_run


def is_foreign(call: Call) -> bool:
    """Whether somebody else than the control plane made it."""
    return not call.agent.startswith(("plane/", "kwok/", "kube-")) and not call.user.startswith("system:node")


def _note(lives: dict[tuple[str, str], PodLife], call: Call, pod: dict[str, Any]) -> None:
    metadata = pod.get("metadata", {})
    name = metadata.get("name") or call.name
    if call.resource == "pods" and call.verb == "create":
        lives[call.namespace, name] = PodLife(call.namespace, name, metadata.get("labels", {}), created=call.ended)
    life = lives.get((call.namespace, name))
    if life is None:
        return
    conditions = pod.get("status", {}).get("conditions", []) if call.resource == "pods/status" else []
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        life.ready = life.ready or call.ended
    if call.verb in ("delete", "deletecollection"):
        life.deleted = life.deleted or call.ended
        if metadata.get("deletionGracePeriodSeconds", 0) == 0:
            life.gone = call.ended


def _decode(event: dict[str, Any]) -> Call:
    reference = event.get("objectRef", {})
    answer = event.get("responseObject") or {}
    sub = reference.get("subresource")
    query = parse_qs(urlsplit(event["requestURI"]).query)
    return Call(
        started=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        ended=datetime.fromisoformat(event["stageTimestamp"]),
        verb=event["verb"],
        resource=reference.get("resource", "") + (f"/{sub}" if sub else ""),
        namespace=reference.get("namespace", ""),
        name=reference.get("name") or answer.get("metadata", {}).get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        user=event["user"].get("username", ""),
        agent=event.get("userAgent", ""),
        dry_run="dryRun" in query,
        body=event.get("requestObject") or {},
        answer=answer,
    )
