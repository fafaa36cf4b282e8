"""What happens to pods during an attack: their CPU and memory, restarts, OOM kills, evictions, lost pods, warnings.

CPU and memory come from the metrics API (``metrics.k8s.io``), as metrics-server and others offer it. A namespace is the
sum of its pods in a round. So all of its pods are written as soon as one of them has a new measurement, and none
otherwise.

Incidents are found by comparing two looks, by the identity and the counts of what is there. Clocks are never compared:
those of a cluster's machines, its API server and ours are not the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from loadstone.collect.targets.base import ResourceSample, UnsampledError
from loadstone.collect.targets.kubernetes.client import (
    EVENT,
    POD,
    POD_METRICS,
    Cluster,
    ClusterError,
    Object,
    parse_quantity,
)

Incident = dict[str, Any]

MOST = 200  # incidents that are listed
_LONGEST = 1000  # characters of a text from the cluster
_EVICTIONS = {"Evicted", "Preempted", "TaintManagerEviction"}
_OOM = "OOMKilled"
_OVER = {"Succeeded", "Failed"}
_SAMPLE_PATIENCE_S = 1.0  # of one call: there is another sample soon

# Name of each pod -> what it used, and when that was measured by the cluster's clock.
_Windows = Mapping[str, tuple[str, ResourceSample]]


# --- CPU and memory --------------------------------------------------------------------------------------------------


class PodMetrics:
    """What the pods of some namespaces use.

    It has a connection of its own, and little patience: it runs beside an attack. `sample` may be called from another
    thread than the rest of the target.
    """

    def __init__(self, context: str | None, namespaces: Iterable[str]) -> None:
        self._cluster = Cluster(context, patience_s=_SAMPLE_PATIENCE_S)
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._last: dict[str, dict[str, str]] = {}

    def sample(self) -> list[ResourceSample]:
        """A sample per pod of every namespace in which any pod was measured anew since the last call.

        Metrics are measured every 15 s or so, however often they are asked for. All pods of such a namespace are in the
        answer, so that their sum is that of the namespace. The first answer of a namespace was measured before the
        attack: it is only remembered. Raises UnsampledError for what can't be asked, with the samples of the rest.
        """
        found: list[ResourceSample] = []
        problems: list[str] = []
        for namespace in self._namespaces:
            try:
                windows = _windows(namespace, self._cluster.list(POD_METRICS, namespace))
            except ClusterError as error:
                problems.append(_problem(namespace, error))
                if error.status == HTTPStatus.FORBIDDEN:
                    continue
                break  # so it is for all of them
            measured = {name: window for name, (window, _) in windows.items()}
            before = self._last.get(namespace)
            self._last[namespace] = measured
            if before is not None and any(before.get(name) != window for name, window in measured.items()):
                found += [sample for _, sample in windows.values()]
        if problems:
            raise UnsampledError("; ".join(dict.fromkeys(problems)), found)
        return found


def _windows(namespace: str, items: Iterable[Object]) -> _Windows:
    """Metrics that can't be understood are left out."""
    found = {}
    for item in items:
        try:
            name, window = item["metadata"]["name"], item["timestamp"]
            measured_at = datetime.fromisoformat(window)
            cores, memory_bytes = _sum(item["containers"], "cpu"), _sum(item["containers"], "memory")
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if measured_at.tzinfo is not None:
            cpu = None if cores is None else float(cores * 1000)
            memory = None if memory_bytes is None else float(memory_bytes) / (1 << 20)
            found[name] = (window, ResourceSample(measured_at, "pod", f"{namespace}/{name}", cpu, memory))
    return found


def _sum(containers: Iterable[Mapping[str, Any]], resource: str) -> Decimal | None:
    """Of all containers of a pod; None when one of them is not known."""
    try:
        quantities = [parse_quantity(container["usage"][resource]) for container in containers]
    except (KeyError, ValueError):
        return None
    total = sum(quantities, start=Decimal(0))
    return total if quantities and total.is_finite() else None


def _problem(namespace: str, error: ClusterError) -> str:
    """Always the same text for the same reason."""
    if error.status == HTTPStatus.NOT_FOUND:
        return "the cluster has no metrics API (metrics.k8s.io), so CPU and memory of its pods are not known"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"CPU and memory of the pods in {namespace} are not known: {error}"
    return f"the metrics API does not answer, so CPU and memory of pods are not known (status {error.status})"


# --- incidents -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """Pods and events by uid."""

    pods: Mapping[str, Object] = field(default_factory=dict)
    events: Mapping[str, Object] = field(default_factory=dict)


class Watched:
    """Some namespaces from `begin` on."""

    def __init__(self, cluster: Cluster, namespaces: Iterable[str]) -> None:
        self._cluster = cluster
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._before: _Look | None = None
        self._problem = "nobody looked before the attack"

    def begin(self) -> None:
        """Look at what is there now. When that fails, `incidents` says so."""
        self._before = self._look()

    def incidents(self) -> list[Incident]:
        """What happened since: ``kind``, ``object``, ``text`` and, where known, ``container``, ``reason``, ``count``.

        Kinds: ``oom`` and ``restart`` of a container, ``ended`` (and not started again), ``evicted``, ``replaced``,
        ``vanished``, ``failed`` and ``added`` of a pod, ``warning`` for events, ``unknown`` when the cluster could not
        be asked. The first `MOST` are listed, the rest is counted.
        """
        after = self._look() if self._before is not None else None
        if self._before is None or after is None:
            text = f"it is not known what happened during the attack: {self._problem}"
            return [{"kind": "unknown", "object": ", ".join(self._namespaces), "text": text[:_LONGEST]}]
        found = [*_pod_incidents(self._before, after), *_event_incidents(self._before.events, after.events)]
        if len(found) > MOST:
            more = {"kind": "more", "object": ", ".join(self._namespaces), "text": f"{len(found) - MOST} more"}
            found = [*found[:MOST], more]
        return found

    def _look(self) -> _Look | None:
        try:
            pods = [pod for namespace in self._namespaces for pod in self._cluster.list(POD, namespace)]
            events = [event for namespace in self._namespaces for event in self._cluster.list(EVENT, namespace)]
        except ClusterError as error:
            self._problem = str(error)
            return None
        return _Look(*({each["metadata"]["uid"]: each for each in found} for found in (pods, events)))


# --- pods ------------------------------------------------------------------------------------------------------------


def _pod_incidents(before: _Look, after: _Look) -> Iterator[Incident]:
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
    """Of a pod that is gone, going or finished. A successor is taken out of `new`."""
    status = (now or {}).get("status", {})
    reason = status.get("reason") or _disruption(status)
    if eviction is not None or (reason is not None and "Evict" in reason):
        text = eviction or status.get("message") or "was evicted"
        return _incident("evicted", _name(before), text, reason=reason or "Evicted")
    if now is not None and not _is_leaving(now) and status.get("phase") == "Failed":
        return _incident("failed", _name(before), status.get("message") or "has failed", reason=reason)
    owners = _owners(before)
    for uid, pod in new.items():
        if owners & _owners(pod):
            del new[uid]
            return _incident("replaced", _name(before), f"was replaced by {_name(pod)}", reason=reason)
    text = "is being deleted" if now is not None else "is gone"
    return _incident("vanished", _name(before), f"{text}, and no other took its place", reason=reason)


def _container_incidents(before: Object, now: Object) -> Iterator[Incident]:
    former = {status["name"]: status for status in _containers(before)}
    for status in _containers(now):
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


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _terminated(status: Mapping[str, Any], state: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (status.get(state) or {}).get("terminated")
    return found


def _is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_over(pod: Object) -> bool:
    """Whether a pod serves nothing any more, or soon."""
    return _is_leaving(pod) or pod.get("status", {}).get("phase") in _OVER


def _disruption(status: Mapping[str, Any]) -> str | None:
    """Why the cluster itself ends a pod, such as ``EvictionByEvictionAPI``."""
    targets = (each for each in status.get("conditions") or () if each.get("type") == "DisruptionTarget")
    return next((each.get("reason") for each in targets if each.get("status") == "True"), None)


def _owners(pod: Object) -> set[str]:
    return {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


# --- events ----------------------------------------------------------------------------------------------------------


def _event_incidents(before: Mapping[str, Object], after: Mapping[str, Object]) -> Iterator[Incident]:
    for event, count in newer_events(before, after):
        if event.get("type") == "Warning":
            about = event.get("involvedObject", {})
            parts = (about.get("namespace"), about.get("name"))
            name = f"{about.get('kind') or 'Object'} {'/'.join(part for part in parts if part)}"
            yield _incident("warning", name, event.get("message") or "", reason=event.get("reason"), count=count)


def newer_events(before: Mapping[str, Object], after: Mapping[str, Object]) -> Iterator[tuple[Object, int]]:
    """Events that are new or were counted up, and by how much."""
    for uid, event in after.items():
        if (count := _count(event) - _count(before.get(uid))) > 0:
            yield event, count


def _count(event: Object | None) -> int:
    if event is None:
        return 0
    return max(event.get("count") or 1, (event.get("series") or {}).get("count") or 0)


def _evicted(before: Mapping[str, Object], after: Mapping[str, Object]) -> dict[str, str]:
    """What is said of pods that were evicted, by the pods' uid."""
    return {
        event["involvedObject"]["uid"]: event.get("message") or "was evicted"
        for event, _ in newer_events(before, after)
        if event.get("reason") in _EVICTIONS and event.get("involvedObject", {}).get("uid")
    }


def _incident(kind: str, name: str, text: str, **more: Any) -> Incident:
    known = {key: value for key, value in more.items() if value is not None}
    return {"kind": kind, "object": name, "text": text[:_LONGEST], **known}
