"""What happens to pods during an attack: their CPU and memory, restarts, OOM kills, evictions, lost pods, warnings.

CPU and memory come from the metrics API (``metrics.k8s.io``), which metrics-server and others provide. The usage of a
namespace is the sum over its pods in one round of samples. So all of its pods are written as soon as one of them has a
new measurement, and none otherwise.

Incidents are the differences between two snapshots, by uid and counters. Clocks are never compared: those of the
cluster's nodes, its API server and this machine differ.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any, NamedTuple

from loadstone.collect.targets.base import ResourceSample, UnsampledError
from loadstone.collect.targets.kubernetes import objects
from loadstone.collect.targets.kubernetes.client import Cluster, ClusterError, parse_quantity
from loadstone.collect.targets.kubernetes.objects import Object

Incident = dict[str, Any]

MOST = 200  # incidents that are listed
_LONGEST = 1000  # characters of a text from the cluster
_EVICTIONS = {"Evicted", "Preempted", "TaintManagerEviction"}
_OOM = "OOMKilled"
_SAMPLE_TIMEOUT_S = 1.0  # of one call: there is another sample soon


# --- CPU and memory --------------------------------------------------------------------------------------------------


class PodMetrics:
    """The CPU and memory of the pods of some namespaces.

    It has a connection of its own, and little patience, because it samples during an attack. `sample` may be called
    from another thread than the rest of the target.
    """

    def __init__(self, context: str | None, namespaces: Iterable[str]) -> None:
        self._cluster = Cluster(context, patience_s=_SAMPLE_TIMEOUT_S)
        # By namespace, then by pod: when its last sample was measured, by the cluster's clock.
        self._measured: dict[str, dict[str, datetime] | None] = dict.fromkeys(namespaces)

    def sample(self) -> list[ResourceSample]:
        """A sample per pod of every namespace in which any pod was measured again since the last call.

        Metrics are measured every 15 s or so, however often they are read. All pods of such a namespace are in the
        result, so that their sum is the usage of the namespace. The first measurement of a namespace is from before the
        attack, so it is only remembered. Raises UnsampledError for what can't be read, with the other samples.
        """
        found: list[ResourceSample] = []
        problems: list[str] = []
        for namespace, before in self._measured.items():
            try:
                samples = _samples(namespace, self._cluster.list(objects.POD_METRICS, namespace))
            except ClusterError as error:
                problems.append(_problem(namespace, error))
                if error.status == HTTPStatus.FORBIDDEN:
                    continue
                break  # the same error would follow for all others
            measured = {sample.name: sample.sampled_at for sample in samples}
            self._measured[namespace] = measured
            if before is not None and not measured.items() <= before.items():
                found += samples
        if problems:
            raise UnsampledError("; ".join(dict.fromkeys(problems)), found)
        return found


def _samples(namespace: str, items: Iterable[Object]) -> list[ResourceSample]:
    """One per pod, without those whose metrics can't be read."""
    found = []
    for item in items:
        try:
            name, measured_at = f"{namespace}/{item['metadata']['name']}", datetime.fromisoformat(item["timestamp"])
            cores, memory_bytes = _sum(item["containers"], "cpu"), _sum(item["containers"], "memory")
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if measured_at.tzinfo is not None:
            cpu = None if cores is None else float(cores * 1000)
            memory = None if memory_bytes is None else float(memory_bytes) / (1 << 20)
            found.append(ResourceSample(measured_at, "pod", name, cpu, memory))
    return found


def _sum(containers: Iterable[Mapping[str, Any]], resource: str) -> Decimal | None:
    """The usage of all containers of a pod; None when that of one is not known."""
    try:
        quantities = [parse_quantity(container["usage"][resource]) for container in containers]
    except (KeyError, ValueError):
        return None
    return sum(quantities, start=Decimal(0)) if quantities else None


def _problem(namespace: str, error: ClusterError) -> str:
    """The problem as text, which is the same for the same reason."""
    if error.status == HTTPStatus.NOT_FOUND:
        return "the cluster has no metrics API (metrics.k8s.io), so CPU and memory of its pods are unknown"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"CPU and memory of the pods in {namespace} are unknown: {error}"
    return f"the metrics API does not respond, so CPU and memory of pods are unknown (status {error.status})"


# --- incidents -------------------------------------------------------------------------------------------------------


class _Snapshot(NamedTuple):
    """Pods and events by uid."""

    pods: Mapping[str, Object]
    events: Mapping[str, Object]


class Watched:
    """Some namespaces from `begin` on."""

    def __init__(self, cluster: Cluster, namespaces: Iterable[str]) -> None:
        self._cluster = cluster
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._before: _Snapshot | None = None
        self._problem = "the state before the attack was not recorded"

    def begin(self) -> None:
        """Remember what is there now. When that fails, `incidents` says so."""
        self._before = self._snapshot()

    def incidents(self) -> list[Incident]:
        """What happened since: ``kind``, ``object``, ``text`` and, where known, ``container``, ``reason``, ``count``.

        Kinds: ``oom`` and ``restart`` of a container, ``ended`` (and not started again), ``evicted``, ``replaced``,
        ``vanished``, ``failed`` and ``added`` of a pod, ``warning`` for events, ``unknown`` when the cluster did not
        answer. The first `MOST` are listed; ``more`` counts the others.
        """
        after = self._snapshot() if self._before is not None else None
        names = ", ".join(self._namespaces)
        if self._before is None or after is None:
            return [_incident("unknown", names, f"events during the attack are unknown: {self._problem}")]
        found = [*_pod_incidents(self._before, after), *_event_incidents(self._before.events, after.events)]
        if len(found) > MOST:
            found = [*found[:MOST], _incident("more", names, f"{len(found) - MOST} more")]
        return found

    def _snapshot(self) -> _Snapshot | None:
        try:
            pods, events = (
                {each["metadata"]["uid"]: each for name in self._namespaces for each in self._cluster.list(kind, name)}
                for kind in (objects.POD, objects.EVENT)
            )
        except ClusterError as error:
            self._problem = str(error)
            return None
        return _Snapshot(pods, events)


# --- pods ------------------------------------------------------------------------------------------------------------


def _pod_incidents(before: _Snapshot, after: _Snapshot) -> Iterator[Incident]:
    new = {uid: pod for uid, pod in after.pods.items() if uid not in before.pods}
    evicted = _evicted(before.events, after.events)
    for uid, pod in before.pods.items():
        now = after.pods.get(uid)
        if now is not None:
            yield from _container_incidents(pod, now)
        if not _is_over(pod) and (now is None or _is_over(now)):
            yield _lost_pod(pod, now, evicted.get(uid), new)
    for pod in new.values():
        yield from _container_incidents({}, pod)
        yield _incident("added", _name(pod), "was created during the attack")


def _lost_pod(before: Object, now: Object | None, eviction: str | None, new: dict[str, Object]) -> Incident:
    """The incident of a pod that is gone, terminating or finished. A successor is removed from `new`."""
    status = (now or {}).get("status", {})
    reason = status.get("reason") or _disruption(status)
    if eviction is not None or (reason is not None and "Evict" in reason):
        text = eviction or status.get("message") or "was evicted"
        return _incident("evicted", _name(before), text, reason=reason or "Evicted")
    if now is not None and not objects.is_terminating(now) and status.get("phase") == "Failed":
        return _incident("failed", _name(before), status.get("message") or "has failed", reason=reason)
    owners = _owners(before)
    for uid, pod in new.items():
        if owners & _owners(pod):
            del new[uid]
            return _incident("replaced", _name(before), f"was replaced by {_name(pod)}", reason=reason)
    text = "is being deleted" if now is not None else "is gone"
    return _incident("vanished", _name(before), f"{text} and was not replaced", reason=reason)


def _container_incidents(before: Object, now: Object) -> Iterator[Incident]:
    former = {status["name"]: status for status in objects.container_statuses(before)}
    for status in objects.container_statuses(now):
        known = former.get(status["name"], {})
        restarts = status.get("restartCount", 0) - known.get("restartCount", 0)
        how = {"container": status["name"]}
        ended = _terminated(status, "state")
        if restarts > 0:
            last = _terminated(status, "lastState") or ended or {}
            times = "restarted" if restarts == 1 else f"restarted {restarts} times"
            why = f"{times}; before that it {_end(last)}" if last else times
            kind = "oom" if last.get("reason") == _OOM else "restart"
            yield _incident(kind, _name(now), why, **how, reason=last.get("reason"), count=restarts)
        elif ended and not _terminated(known, "state") and ended.get("exitCode", 0) != 0:
            kind = "oom" if ended.get("reason") == _OOM else "ended"
            text = f"{_end(ended)} and was not started again"
            yield _incident(kind, _name(now), text, **how, reason=ended.get("reason"), count=1)


def _end(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason") == _OOM:
        return "was killed for lack of memory (OOMKilled)"
    code = terminated.get("exitCode")
    return f"ended with exit code {code} ({terminated.get('reason') or 'no reason given'})"


def _terminated(status: Mapping[str, Any], state: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (status.get(state) or {}).get("terminated")
    return found


def _is_over(pod: Object) -> bool:
    """Whether a pod no longer serves, or will soon stop."""
    return objects.is_terminating(pod) or objects.is_finished(pod)


def _disruption(status: Mapping[str, Any]) -> str | None:
    """The reason for which the cluster itself ends a pod, such as ``EvictionByEvictionAPI``."""
    targets = (each for each in status.get("conditions") or () if each.get("type") == "DisruptionTarget")
    return next((each.get("reason") for each in targets if each.get("status") == "True"), None)


def _owners(pod: Object) -> set[str]:
    return {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


# --- events ----------------------------------------------------------------------------------------------------------


def _event_incidents(before: Mapping[str, Object], after: Mapping[str, Object]) -> Iterator[Incident]:
    for event, count in objects.newer_events(before, after):
        if event.get("type") == "Warning":
            about = event.get("involvedObject", {})
            parts = (about.get("namespace"), about.get("name"))
            name = f"{about.get('kind') or 'Object'} {'/'.join(part for part in parts if part)}"
            yield _incident("warning", name, event.get("message") or "", reason=event.get("reason"), count=count)


def _evicted(before: Mapping[str, Object], after: Mapping[str, Object]) -> dict[str, str]:
    """By the pod's uid, the message of its eviction."""
    return {
        event["involvedObject"]["uid"]: event.get("message") or "was evicted"
        for event, _ in objects.newer_events(before, after)
        if event.get("reason") in _EVICTIONS and event.get("involvedObject", {}).get("uid")
    }


def _incident(kind: str, name: str, text: str, **more: Any) -> Incident:
    known = {key: value for key, value in more.items() if value is not None}
    return {"kind": kind, "object": name, "text": text[:_LONGEST], **known}
