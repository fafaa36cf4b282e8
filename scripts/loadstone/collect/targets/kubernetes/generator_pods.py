"""Load generators in the cluster: a Job with a pod for each, which receive their plan and their start over HTTP.

They are reached through the API server's proxy to pods, so that nothing but the API server must be reachable from here,
and neither a shared volume nor the right to run commands in pods is needed. Results are fetched in parts, each of which
may be requested again, and checked against their checksums.

Clocks differ from machine to machine. Each pod's is compared with this machine's before and after the attack; the
agreed start is sent to each pod by its own clock. A pod without requests for a minute ends, as does its Job.

Logs and `exec` are no way to fetch results: logs are rotated at 10 MiB, and `exec` cannot resume. A pod with a wrong
clock still starts on time; the offset of its clock is recorded, and `sent_at` stays as the pod wrote it. The record
names the pods' namespace before there are any, and their label is its id. Restoring the cluster deletes by that
label, so a killed job needs no clean-up of its own, and the next run begins with the same.

Certificates and private keys reach the pods as a Secret, never in the plan: the API server's connections to pods are
not encrypted. The Job owns the Secret, so that it is gone with the Job at the latest.
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
from http import HTTPStatus
from typing import Any, NoReturn

from loadstone.collect.generators.several import Outputs, failure, own_requests
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.collect.targets.kubernetes import objects
from loadstone.collect.targets.kubernetes.client import Cluster, ClusterError, ConflictError
from loadstone.collect.targets.kubernetes.objects import Kind, Object
from loadstone.collect.targets.kubernetes.settings import Declared, Generators
from loadstone.config.connection import FILES
from loadstone.errors import LoadstoneError, printable

RECORD = "loadstone/record"  # label of everything that a session has created: the id of its record
INDEX = "batch.kubernetes.io/job-completion-index"
_NAME = "loadstone-load"
_FOLDER, _TLS_FOLDER = "/results", "/tls"
_USER = 65532  # any user but root
_EXCHANGES = 8
_POLL_S, _STATUS_S = 0.3, 1.0
_AHEAD_S, _SLACK = 1.0, 4  # the agreed start is so long after it is sent, plus so many times what sending takes
_PART_BYTES = 8 << 20
_GRACE_S = 600  # for fetching the results
_HOPELESS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CrashLoopBackOff")


@dataclass(frozen=True)
class Pod:
    """One generator. `name` and `node` are where it runs."""

    number: int
    name: str
    node: str


def start(job: Job, plans: Sequence[Mapping[str, Any]], outputs: Sequence[Outputs]) -> "PodFleet":
    """Start the generators of a run, in the session of this command."""
    declared = Declared.of(job.target, job.cell.campaign.host)
    if declared.generators is None:
        raise LoadstoneError(f"{job.cell} needs load generators in the cluster, but target.generators is not declared")
    cluster = Cluster(declared.context, patience_s=declared.patience_s, log=job.log)
    state = session.fence(declared.patience_s)
    fleet = PodFleet(cluster, declared.generators, declared.ready_timeout_s, state.record, plans, outputs)
    try:
        fleet.begin(job, lambda: session.fence(declared.patience_s), session.check)
    except BaseException:
        fleet.stop()
        raise
    return fleet


@dataclass
class PodFleet:
    """A Job's pods, one for each of `plans`; their requests are in `outputs` at the end."""

    cluster: Cluster
    declared: Generators
    ready_timeout_s: float
    record: str
    plans: Sequence[Mapping[str, Any]]
    outputs: Sequence[Outputs]
    reports: list[dict[str, Any]] = field(default_factory=list)
    started_s: float = math.inf
    command: list[str] = field(default_factory=lambda: ["paced"])
    pids: tuple[int, ...] = ()
    _token: str = field(default_factory=lambda: secrets.token_hex(16))
    _pods: list[Pod] = field(default_factory=list)
    _job: Object | None = None
    _secret: Object | None = None
    _done: set[int] = field(default_factory=set)
    _polled_s: float = 0.0
    _tail: str = ""

    # --- before the start ---------------------------------------------------------------------------------------------

    def begin(self, job: Job, fence: Callable[[], object], check: Callable[[], object]) -> None:
        """Create the Job, and agree with its pods on a start. Raises RunFailedError when they are not ready in time."""
        deadline = time.monotonic() + self.ready_timeout_s
        namespace = self.declared.namespace
        remove(self.cluster, namespace, self.record, fence)
        self._wait(lambda: not self._listed(), deadline, "generators of an earlier run are not gone", check)
        seconds = sum(stage["nanoseconds"] for stage in self.plans[0]["stages"]) / 1e9
        limit_s = math.ceil(self.ready_timeout_s + seconds + job.timeout_s + _GRACE_S)
        files = {f"{name}.pem": text for name, text in self.plans[0]["connection"].items() if name in FILES}
        body = manifest(self.declared, len(self.plans), self.record, self._token, limit_s, tls=bool(files))
        fence()
        self._secret = self._write_secret(body["metadata"], files) if files else None
        try:
            self._job = self.cluster.create(objects.JOB, namespace, body)
        except ConflictError:  # the answer to an earlier try was lost
            self._job = self.cluster.get(objects.JOB, namespace, body["metadata"]["name"])
        except ClusterError as error:
            if error.is_transient:
                raise
            raise RunFailedError(f"the generators' Job can't be created: {error}") from None
        if self._secret and self._job:
            self._secret = self._own(self._secret, self._job)
        self._wait(self._are_ready, deadline, "the generators' pods are not ready", check)
        for pod in self._pods:
            self._ask(pod, "POST", "plan", self._plan(pod, job.timeout_s))
        self._agree()

    def _write_secret(self, named: Object, files: Mapping[str, str]) -> Object:
        """Write the files of TLS for the pods of a Job; the Secret has its name and labels."""
        try:
            return self.cluster.create(
                objects.SECRET, self.declared.namespace, {"metadata": dict(named), "stringData": dict(files)}
            )
        except ClusterError as error:
            if error.is_transient:
                raise
            raise RunFailedError(f"the generators' Secret can't be created: {error}") from None

    def _own(self, secret: Object, job: Object) -> Object:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"]}
        secret["metadata"]["ownerReferences"] = [{**owner, "uid": job["metadata"]["uid"]}]
        return self.cluster.replace(objects.SECRET, self.declared.namespace, secret)

    def _plan(self, pod: Pod, timeout_s: float) -> Object:
        """The plan of a pod, without the files of TLS, which it has in a folder."""
        plan = self.plans[pod.number]
        connection = {name: value for name, value in plan["connection"].items() if name not in FILES}
        return {**plan, "connection": connection, "timeout": round(timeout_s * 1e9)}

    def _agree(self) -> None:
        clocks = [self._clock(pod) for pod in self._pods]
        sending_s = sum(uncertainty_ns for uncertainty_ns, _ in clocks) * 2 / 1e9
        ahead_s = _AHEAD_S + _SLACK * sending_s
        start_ns = time.time_ns() + round(ahead_s * 1e9)
        self.started_s = time.monotonic() + ahead_s
        for pod, (uncertainty_ns, offset_ns) in zip(self._pods, clocks, strict=True):
            self._ask(pod, "POST", "start", {"start": start_ns + offset_ns})
            self.reports.append(
                {
                    "generator": pod.number,
                    "requests": own_requests(self.plans[pod.number], pod.number),
                    "pod": pod.name,
                    "node": pod.node,
                    "start": start_ns + offset_ns,
                    "clock_offset_ns": offset_ns,
                    "clock_uncertainty_ns": uncertainty_ns,
                }
            )

    def _clock(self, pod: Pod) -> tuple[int, int]:
        """(uncertainty, how far the pod's clock is ahead of this machine's), from the quickest of several exchanges.

        The pod reads its clock between request and answer, so half of that time is the uncertainty.
        """
        found = []
        for _ in range(_EXCHANGES):
            before_ns = time.time_ns()
            now_ns = int(self._status(pod)["now"])
            after_ns = time.time_ns()
            found.append((max(1, (after_ns - before_ns) // 2), now_ns - (before_ns + after_ns) // 2))
        return min(found)

    def _are_ready(self) -> bool:
        ready = {}
        for pod in self._listed():
            if why := _failure_reason(pod):
                raise RunFailedError(printable(f"the generator {pod['metadata']['name']} can't start: {why}"))
            if objects.is_ready(pod) and pod["status"].get("phase") == "Running" and not objects.is_terminating(pod):
                ready[int(objects.labels_of(pod).get(INDEX, -1))] = pod
        if set(ready) != set(range(len(self.plans))):
            return False
        self._pods = [
            Pod(number, pod["metadata"]["name"], pod["spec"].get("nodeName") or "?")
            for number, pod in sorted(ready.items())
        ]
        return True

    def _wait(self, condition: Callable[[], bool], deadline: float, problem: str, check: Callable[[], object]) -> None:
        while not condition():
            if time.monotonic() > deadline:
                states = "; ".join(map(objects.pod_state, self._listed())) or "there is none"
                raise RunFailedError(printable(f"{problem} in time: {states}"))
            check()
            time.sleep(_POLL_S)

    def _listed(self) -> list[Object]:
        return self.cluster.list(objects.POD, self.declared.namespace, {RECORD: self.record})

    # --- while they send, and after -----------------------------------------------------------------------------------

    def exit_code(self) -> int | None:
        """0 when all have sent everything and it is fetched. Raises RunFailedError as soon as one has failed."""
        if time.monotonic() - self._polled_s < _STATUS_S:
            return None
        self._polled_s = time.monotonic()
        for pod in self._pods:
            if pod.number not in self._done:
                status = self._status(pod)
                if status["state"] == "failed":
                    self._fail(pod, str(status.get("error")))
                if status["state"] == "done":
                    self._done.add(pod.number)
        if len(self._done) < len(self._pods):
            return None
        for pod, report in zip(self._pods, self.reports, strict=True):
            uncertainty_ns, offset_ns = self._clock(pod)
            report["clock_drift_ns"] = offset_ns - report["clock_offset_ns"]
            report["clock_uncertainty_ns"] = max(report["clock_uncertainty_ns"], uncertainty_ns)
        for pod in self._pods:
            self._fetch(pod)
        return 0

    def stop(self) -> None:
        """Delete Job, pods and Secret. What can't be deleted now, the cluster's keeper deletes at the end."""
        try:
            if self._secret is not None:
                _delete(self.cluster, objects.SECRET, self._secret)
                self._secret = None
            if self._job is not None:
                _delete(self.cluster, objects.JOB, self._job)
                self._job = None
        except LoadstoneError as error:
            self._tail = str(error)

    def tail(self) -> str:
        return self._tail

    def _status(self, pod: Pod) -> Object:
        found = json.loads(self._ask(pod, "GET", "status"))
        if not isinstance(found, dict) or not isinstance(found.get("now"), int):
            self._fail(pod, "its response is not that of a load generator")
        if "redacted" not in found:
            self._fail(pod, "its image is of an earlier version, which does not redact results: build it again")
        return dict(found)

    def _ask(
        self, pod: Pod, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        where = (self.declared.namespace, pod.name, self.declared.port)
        sent = {"X-Loadstone-Token": self._token, **(headers or {})}
        try:
            return self.cluster.proxy(
                *where, method, path, body=body, headers=sent, is_worth_waiting=lambda: self._is_alive(pod)
            )
        except ClusterError as error:
            if not error.status:  # the state of the pod is not known
                raise
            self._fail(pod, str(error))

    def _is_alive(self, pod: Pod) -> bool:
        held = self.cluster.get(objects.POD, self.declared.namespace, pod.name)
        return held is not None and not objects.is_terminating(held) and not _failure_reason(held)

    def _fail(self, pod: Pod, reason: str) -> NoReturn:
        held = self.cluster.get(objects.POD, self.declared.namespace, pod.name)
        state = objects.pod_state(held) if held else "it is gone"
        raise RunFailedError(printable(failure(self.plans[pod.number], f"({state}) failed", None, reason)))

    def _fetch(self, pod: Pod) -> None:
        """Fetch a pod's results part by part; only a part that does not arrive is requested again."""
        status, outputs = self._status(pod), self.outputs[pod.number]
        if "negotiated" not in status and self.plans[pod.number]["connection"]:
            self._fail(pod, "its image is of an earlier version, which ignores tls, protocol, resolve and keepalive")
        outputs.negotiated.write_text(json.dumps(status.get("negotiated") or []))
        outputs.redacted.write_text(json.dumps(status["redacted"]))
        files = status["files"]
        for name, destination in (("measured", outputs.measured), ("others", outputs.others)):
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
                self._fail(pod, f"its {name} requests were damaged in transit")
            with gzip.open(packed) as source, destination.open("wb") as output:
                shutil.copyfileobj(source, output, 1 << 20)
            packed.unlink()


def manifest(declared: Generators, count: int, record: str, token: str, limit_s: int, *, tls: bool = False) -> Object:
    """The Job: a pod for each generator, never restarted, spread over the nodes as far as possible.

    With `tls` the pods mount the Secret of the Job's name.
    """
    name = f"{_NAME}-{token[:8]}"
    labels = {"app.kubernetes.io/name": _NAME, RECORD: record}
    wanted = {"cpu": str(declared.cpu), "memory": str(declared.memory)}
    container: Object = {
        "name": "generator",
        "image": declared.image,
        "command": [*declared.command, "-listen", f":{declared.port}", "-folder", _FOLDER],
        "env": [{"name": "LOADSTONE_TOKEN", "value": token}],
        "ports": [{"containerPort": declared.port}],
        "readinessProbe": {"tcpSocket": {"port": declared.port}, "periodSeconds": 1},
        "resources": {"requests": wanted, "limits": wanted},
        "volumeMounts": [{"name": "results", "mountPath": _FOLDER}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": dict(declared.node_selector),
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
    if tls:
        container["command"] += ["-tls", _TLS_FOLDER]
        container["volumeMounts"].append({"name": "tls", "mountPath": _TLS_FOLDER, "readOnly": True})
        spec["volumes"].append({"name": "tls", "secret": {"secretName": name}})
    return {
        "metadata": {"name": name, "labels": labels},
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
    """Delete all Jobs that a session has created, and Secrets that no Job owns yet."""
    for kind in (objects.JOB, objects.SECRET):
        try:
            found = cluster.list(kind, namespace, {RECORD: record})
        except ClusterError as error:
            if kind is objects.SECRET and error.status == HTTPStatus.FORBIDDEN:  # without files there is no Secret
                return
            raise
        for each in found:
            fence()
            _delete(cluster, kind, each)


def _delete(cluster: Cluster, kind: Kind, found: Object) -> None:
    metadata = found["metadata"]
    cluster.delete(kind, metadata["namespace"], metadata["name"], metadata["uid"], cascade=True)


def _failure_reason(pod: Object) -> str:
    """Why a pod will never generate any load; empty while it may."""
    for each in pod.get("status", {}).get("containerStatuses") or []:
        waiting = each.get("state", {}).get("waiting") or {}
        if (reason := waiting.get("reason")) in _HOPELESS:
            return f"{reason}: {waiting.get('message', '')}".strip(": ")
    return objects.pod_state(pod) if objects.is_finished(pod) else ""
