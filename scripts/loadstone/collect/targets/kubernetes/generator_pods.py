"""Load generators in the cluster: a Job with a pod for each, which get what to send and when to start over HTTP.

They are reached through the API server's proxy to pods, so that nothing but the API server must be reachable from here,
and neither a shared volume nor the right to run commands in pods is needed. Results are fetched in parts, each of which
may be asked for again, and held against their checksums.

Clocks differ from machine to machine. Each pod's is compared with ours before and after the attack; the start that all
agree on is sent to each by its own clock. A pod that is asked nothing for a minute ends, as does its Job.

Logs and `exec` are no way to fetch results: logs are rotated at 10 MiB, and `exec` cannot resume. A pod with a wrong
clock still starts on time; how far the clock is wrong is recorded, and `sent_at` stays as stamped. The record names
where the pods are before there are any, and they have its id as a label. Putting the cluster back deletes by that
label, so a killed job needs no clean-up of its own, and the next run begins with the same.
"""

import gzip
import hashlib
import json
import math
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from loadstone.collect.generators.several import failure, own_requests
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.collect.targets.kubernetes import session
from loadstone.collect.targets.kubernetes.client import JOB, POD, Cluster, ClusterError, ConflictError, Object
from loadstone.collect.targets.kubernetes.ready import is_ready, pod_state
from loadstone.collect.targets.kubernetes.settings import Declared, Generators
from loadstone.errors import LoadstoneError, printable

RECORD = "loadstone/record"  # label of everything that a session has made: the id of its record
INDEX = "batch.kubernetes.io/job-completion-index"
_NAME = "loadstone-load"
_FOLDER = "/results"
_USER = 65532  # nobody in particular, and not root
_EXCHANGES = 8
_POLL_S, _ASK_S = 0.3, 1.0
_AHEAD_S, _SLACK = 1.0, 4  # the agreed start: so long after it is sent to the last, by so many times what sending takes
_PART_BYTES = 8 << 20
_GRACE_S = 600  # for the results to be fetched
_HOPELESS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CrashLoopBackOff")


@dataclass(frozen=True)
class Clock:
    """How far another clock is ahead of this machine's, and by how much that may be wrong (half a round trip)."""

    offset_ns: int
    uncertainty_ns: int


@dataclass(frozen=True)
class Pod:
    """One generator. `name` and `node` are where it runs."""

    number: int
    name: str
    node: str


def start(job: Job, plans: Sequence[Mapping[str, Any]], outputs: Sequence[tuple[Path, Path]]) -> "PodFleet":
    """The generators of a run, in the session of this command."""
    declared = Declared.of(job.target, job.cell.campaign.host)
    if declared.generators is None:
        raise LoadstoneError(f"{job.cell} needs load generators in the cluster, but target.generators is not declared")
    cluster = Cluster(declared.context, patience_s=declared.patience_s, log=job.log)
    state = session.fence(declared.patience_s)
    made = PodFleet(cluster, declared, state.record, plans, outputs)
    try:
        made.begin(job, lambda: session.fence(declared.patience_s), session.check)
    except BaseException:
        made.stop()
        raise
    return made


@dataclass
class PodFleet:
    """A Job's pods, one for each of `plans`; what they have sent is in `outputs` (measured, others) at the end."""

    cluster: Cluster
    declared: Declared
    record: str
    plans: Sequence[Mapping[str, Any]]
    outputs: Sequence[tuple[Path, Path]]
    said: list[dict[str, Any]] = field(default_factory=list)
    started_s: float = math.inf
    command: list[str] = field(default_factory=lambda: ["paced"])
    pids: tuple[int, ...] = ()
    _token: str = field(default_factory=lambda: secrets.token_hex(16))
    _pods: list[Pod] = field(default_factory=list)
    _made: Object | None = None
    _done: set[int] = field(default_factory=set)
    _asked_s: float = 0.0
    _tail: str = ""

    @property
    def _about(self) -> Generators:
        assert self.declared.generators is not None
        return self.declared.generators

    # --- before the start ---------------------------------------------------------------------------------------------

    def begin(self, job: Job, fence: Callable[[], object], check: Callable[[], object]) -> None:
        """Make the Job, and agree with its pods on a start. Raises RunFailedError when that can't be had in time."""
        deadline = time.monotonic() + self.declared.ready_timeout_s
        remove(self.cluster, self._about.namespace, self.record, fence)
        self._wait(lambda: not self._listed(), deadline, "generators of an earlier run are not gone", check)
        seconds = sum(stage["nanoseconds"] for stage in self.plans[0]["stages"]) / 1e9
        limit_s = math.ceil(self.declared.ready_timeout_s + seconds + job.timeout_s + _GRACE_S)
        body = manifest(self._about, len(self.plans), self.record, self._token, limit_s)
        fence()
        try:
            self._made = self.cluster.create(JOB, self._about.namespace, body)
        except ConflictError:  # an answer to it was lost
            self._made = self.cluster.get(JOB, self._about.namespace, body["metadata"]["name"])
        except ClusterError as error:
            if error.is_transient:
                raise
            raise RunFailedError(f"the generators' Job can't be made: {error}") from None
        self._wait(self._are_ready, deadline, "the generators' pods are not ready", check)
        for pod in self._pods:
            self._ask(pod, "POST", "plan", {**self.plans[pod.number], "timeout": round(job.timeout_s * 1e9)})
        self._agree()

    def _agree(self) -> None:
        clocks = [self._compare(pod) for pod in self._pods]
        sending_s = sum(clock.uncertainty_ns for clock in clocks) * 2 / 1e9
        ahead_s = _AHEAD_S + _SLACK * sending_s
        start_ns = time.time_ns() + round(ahead_s * 1e9)
        self.started_s = time.monotonic() + ahead_s
        for pod, clock in zip(self._pods, clocks, strict=True):
            self._ask(pod, "POST", "start", {"start": start_ns + clock.offset_ns})
            self.said.append(
                {
                    "generator": pod.number,
                    "requests": own_requests(self.plans[pod.number], pod.number),
                    "pod": pod.name,
                    "node": pod.node,
                    "start": start_ns + clock.offset_ns,
                    "clock_offset_ns": clock.offset_ns,
                    "clock_uncertainty_ns": clock.uncertainty_ns,
                }
            )

    def _compare(self, pod: Pod) -> Clock:
        """Of several exchanges the quickest: its answer was made in between, so half of it is the uncertainty."""
        found = []
        for _ in range(_EXCHANGES):
            before_ns = time.time_ns()
            now_ns = int(self._status(pod)["now"])
            after_ns = time.time_ns()
            found.append(Clock(now_ns - (before_ns + after_ns) // 2, max(1, (after_ns - before_ns) // 2)))
        return min(found, key=lambda clock: clock.uncertainty_ns)

    def _are_ready(self) -> bool:
        listed = self._listed()
        for pod in listed:
            if why := _failure_reason(pod):
                raise RunFailedError(printable(f"the generator {pod['metadata']['name']} can't start: {why}"))
        ready = {int(pod["metadata"]["labels"].get(INDEX, -1)): pod for pod in listed if _is_ready(pod)}
        if set(ready) != set(range(len(self.plans))):
            return False
        self._pods = [
            Pod(number, pod["metadata"]["name"], pod["spec"].get("nodeName") or "?")
            for number, pod in sorted(ready.items())
        ]
        return True

    def _wait(
        self, condition: Callable[[], bool], deadline: float, what: str, check: Callable[[], object] = lambda: None
    ) -> None:
        while not condition():
            if time.monotonic() > deadline:
                states = "; ".join(map(pod_state, self._listed())) or "there is none"
                raise RunFailedError(printable(f"{what} in time: {states}"))
            check()
            time.sleep(_POLL_S)

    def _listed(self) -> list[Object]:
        return self.cluster.list(POD, self._about.namespace, {RECORD: self.record})

    # --- while they send, and after -----------------------------------------------------------------------------------

    def exit_code(self) -> int | None:
        """0 when all have sent all, and it is here. Raises RunFailedError as soon as one has not."""
        if time.monotonic() - self._asked_s < _ASK_S:
            return None
        self._asked_s = time.monotonic()
        for pod in self._pods:
            if pod.number not in self._done:
                status = self._status(pod)
                if status["state"] == "failed":
                    self._fail(pod, str(status.get("error")))
                if status["state"] == "done":
                    self._done.add(pod.number)
        if len(self._done) < len(self._pods):
            return None
        for pod, said in zip(self._pods, self.said, strict=True):
            after = self._compare(pod)
            said["clock_drift_ns"] = after.offset_ns - said["clock_offset_ns"]
            said["clock_uncertainty_ns"] = max(said["clock_uncertainty_ns"], after.uncertainty_ns)
        for pod in self._pods:
            self._fetch(pod)
        return 0

    def stop(self) -> None:
        """Delete the Job and its pods. What can't be deleted now, the keeper of the cluster deletes at the end."""
        if self._made is None:
            return
        try:
            made = self._made["metadata"]
            self.cluster.delete(JOB, self._about.namespace, made["name"], made["uid"], cascade=True)
            self._made = None
        except LoadstoneError as error:
            self._tail = str(error)

    def tail(self) -> str:
        return self._tail

    def _status(self, pod: Pod) -> Object:
        found = json.loads(self._ask(pod, "GET", "status"))
        if not isinstance(found, dict) or not isinstance(found.get("now"), int):
            self._fail(pod, "it answers as no generator does")
        return dict(found)

    def _ask(
        self, pod: Pod, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        where = (self._about.namespace, pod.name, self._about.port)
        sent = {"X-Loadstone-Token": self._token, **(headers or {})}
        try:
            return self.cluster.through(
                *where, method, path, body=body, headers=sent, is_worth_waiting=lambda: self._is_alive(pod)
            )
        except ClusterError as error:
            if not error.status:  # nobody knows how the pod is
                raise
            self._fail(pod, str(error))

    def _is_alive(self, pod: Pod) -> bool:
        held = self.cluster.get(POD, self._about.namespace, pod.name)
        return held is not None and not held["metadata"].get("deletionTimestamp") and not _failure_reason(held)

    def _fail(self, pod: Pod, said: str) -> NoReturn:
        held = self.cluster.get(POD, self._about.namespace, pod.name)
        state = pod_state(held) if held else "it is gone"
        raise RunFailedError(printable(failure(self.plans[pod.number], f"({state}) failed", None, said)))

    def _fetch(self, pod: Pod) -> None:
        """A pod's results, part by part: one that does not come is asked for again, not the whole."""
        files = self._status(pod)["files"]
        for name, destination in zip(("measured", "others"), self.outputs[pod.number], strict=True):
            packed, size = destination.with_suffix(".gz"), int(files[name]["bytes"])
            digest = hashlib.sha256()
            with packed.open("wb") as file:
                while (at := file.tell()) < size:
                    part = self._ask(pod, "GET", name, headers={"Range": f"bytes={at}-{at + _PART_BYTES - 1}"})
                    if not part or len(part) > _PART_BYTES:
                        self._fail(pod, f"its results end after {at} of {size} bytes")
                    file.write(part)
                    digest.update(part)
            if digest.hexdigest() != files[name]["sha256"]:
                self._fail(pod, f"its {name} requests were damaged on their way")
            with gzip.open(packed) as source, destination.open("wb") as output:
                shutil.copyfileobj(source, output, 1 << 20)
            packed.unlink()


def manifest(about: Generators, count: int, record: str, token: str, limit_s: int) -> Object:
    """The Job: a pod for each generator, none of which is tried again, apart from each other where there is room."""
    labels = {"app.kubernetes.io/name": _NAME, RECORD: record}
    wanted = {"cpu": str(about.cpu), "memory": str(about.memory)}
    container = {
        "name": "generator",
        "image": about.image,
        "command": [*about.command, "-listen", f":{about.port}", "-folder", _FOLDER],
        "env": [{"name": "LOADSTONE_TOKEN", "value": token}],
        "ports": [{"containerPort": about.port}],
        "readinessProbe": {"tcpSocket": {"port": about.port}, "periodSeconds": 1},
        "resources": {"requests": wanted, "limits": wanted},
        "volumeMounts": [{"name": "results", "mountPath": _FOLDER}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": dict(about.node_selector),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "results", "emptyDir": {}}],
    }
    return {
        "metadata": {"name": f"{_NAME}-{token[:8]}", "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "activeDeadlineSeconds": limit_s,
            "ttlSecondsAfterFinished": _GRACE_S,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def remove(cluster: Cluster, namespace: str, record: str, fence: Callable[[], object]) -> None:
    """Delete all Jobs that a session has made."""
    for made in cluster.list(JOB, namespace, {RECORD: record}):
        fence()
        cluster.delete(JOB, namespace, made["metadata"]["name"], made["metadata"]["uid"], cascade=True)


def _is_ready(pod: Object) -> bool:
    status = pod.get("status", {})
    return status.get("phase") == "Running" and is_ready(pod) and not pod["metadata"].get("deletionTimestamp")


def _failure_reason(pod: Object) -> str:
    """Why a pod will never generate any load; empty while it may."""
    status = pod.get("status", {})
    for each in status.get("containerStatuses") or []:
        reason = (each.get("state", {}).get("waiting") or {}).get("reason", "")
        if reason in _HOPELESS:
            return f"{reason}: {(each['state']['waiting']).get('message', '')}".strip(": ")
    if status.get("phase") in ("Failed", "Succeeded"):
        return pod_state(pod)
    return ""
