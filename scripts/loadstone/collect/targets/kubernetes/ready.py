"""Waiting for a cluster: until pods are gone, and until they are up, reachable and nothing else is."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.kubernetes.client import DEPLOYMENT, ENDPOINT_SLICE, EVENT, POD, SERVICE, Cluster, Object
from loadstone.collect.targets.kubernetes.monitoring import newer_events

Name = tuple[str, str]  # namespace and name of a deployment
_POLL_S = 0.5
_SHOWN = 10
_OVER = ("Succeeded", "Failed")


def wait(cluster: Cluster, wanted: Mapping[Name, int], limit_s: float, check: Callable[[], object]) -> None:
    """Until each deployment has its wanted pods: updated, ready, no other left (terminating ones included).

    Unless no pods are wanted at all, Services must lead to them too. `check` is called at each look and may raise.
    Raises RunFailedError, with what the cluster says, after `limit_s`.
    """
    up = any(wanted.values())
    before = _events(cluster, wanted)
    deadline = time.monotonic() + limit_s
    while missing := not_ready(cluster, wanted, services=up):
        check()
        if time.monotonic() > deadline:
            since = [event for event, _ in newer_events(before, _events(cluster, wanted))]
            warnings = tuple(warning_text(event) for event in since if event.get("type") == "Warning")
            failure, shown = "not ready" if up else "not gone", "; ".join(missing[:_SHOWN])
            raise RunFailedError(f"the pods were {failure} within {limit_s:.0f} s: {shown}", warnings[-50:])
        time.sleep(_POLL_S)


def not_ready(cluster: Cluster, wanted: Mapping[Name, int], *, services: bool) -> list[str]:
    """What is still not as wanted, in words; empty when all is."""
    found = []
    for namespace in sorted({namespace for namespace, _ in wanted}):
        deployments = {each["metadata"]["name"]: each for each in cluster.list(DEPLOYMENT, namespace)}
        pods = cluster.list(POD, namespace)
        mine: list[Object] = []
        for (_, name), count in sorted(each for each in wanted.items() if each[0][0] == namespace):
            if name not in deployments:
                found.append(f"the deployment {namespace}/{name} was deleted")
                continue
            own = selected(deployments[name], pods)
            mine += own
            found += [f"{namespace}/{name}: {what}" for what in _deployment_lacks(deployments[name], own, count)]
        if services and not found:
            found += _services_lack(cluster, namespace, pods, mine)
    return found


def _deployment_lacks(deployment: Object, pods: list[Object], count: int) -> list[str]:
    spec, status, metadata = deployment["spec"], deployment.get("status", {}), deployment["metadata"]
    if spec.get("replicas") != count:
        return [f"somebody set its replicas to {spec.get('replicas')} instead of {count}"]
    if status.get("observedGeneration", 0) < metadata["generation"]:
        return ["its change has not been rolled out yet"]
    found = [f"pod {pod['metadata']['name']} is terminating" for pod in pods if "deletionTimestamp" in pod["metadata"]]
    living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if not found and len(living) != count:
        found.append(f"{len(living)} pods instead of {count}")
    for state in ("updatedReplicas", "readyReplicas", "availableReplicas", "replicas"):
        if status.get(state, 0) != count:
            found.append(f"{state} {status.get(state, 0)} of {count}")
            break
    return found + [f"pod {pod_state(pod)}" for pod in living if count and not is_ready(pod)]


def pod_state(pod: Object) -> str:
    """``web-1 is Pending, not ready (Unschedulable: 0/3 nodes are available)``."""
    status = pod.get("status", {})
    reasons = [str(status[name]) for name in ("reason", "message") if status.get(name)]
    reasons += [
        f"{each['name']} {waiting.get('reason', 'waits')}: {waiting.get('message', '')}".rstrip(": ")
        for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        if (waiting := each.get("state", {}).get("waiting"))
    ]
    reasons += [
        f"{each.get('reason')}: {each.get('message', '')}".rstrip(": ")
        for each in status.get("conditions", [])
        if each["type"] == "PodScheduled" and each["status"] != "True"
    ]
    state = f"{pod['metadata']['name']} is {status.get('phase', 'unknown')}"
    if not is_ready(pod):
        state += ", not ready"
        reasons = reasons or ["no reason given"]
    return f"{state} ({'; '.join(reasons)})" if reasons else state


def _services_lack(cluster: Cluster, namespace: str, pods: list[Object], mine: list[Object]) -> list[str]:
    """Services of which the endpoints are not exactly their ready pods. Only those in front of our pods count."""
    slices = cluster.list(ENDPOINT_SLICE, namespace)
    found = []
    for service in cluster.list(SERVICE, namespace):
        selector = service["spec"].get("selector") if service["spec"].get("type") != "ExternalName" else None
        behind = [pod for pod in pods if selector and _selects({"matchLabels": selector}, _labels(pod))]
        if not any(pod in mine for pod in behind):
            continue
        name = service["metadata"]["name"]
        endpoints = [
            each
            for one in slices
            if one["metadata"].get("labels", {}).get("kubernetes.io/service-name") == name
            for each in one.get("endpoints") or []
        ]
        strange = [
            address
            for each in endpoints
            if not (each.get("targetRef") or {}).get("uid")
            for address in each.get("addresses") or ["nowhere"]
        ]
        if strange:
            where = ", ".join(strange[:_SHOWN])
            found.append(f"the Service {namespace}/{name} also leads to {where}: an EndpointSlice without pods")
            continue
        reachable = {(each.get("targetRef") or {}).get("uid") for each in endpoints if _serves(each)}
        expected = {pod["metadata"]["uid"] for pod in behind if is_ready(pod)}
        if reachable != expected or not all(map(_serves, endpoints)):
            what = f"{len(reachable)} ready endpoints of {len(endpoints)} for {len(expected)} ready pods"
            found.append(f"the Service {namespace}/{name} has {what}")
    return found


def _serves(endpoint: Object) -> bool:
    conditions = endpoint.get("conditions") or {}
    return bool(conditions.get("ready", True)) and not conditions.get("terminating")


def is_ready(pod: Object) -> bool:
    """Whether a pod's own condition says so."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def selected(deployment: Object, pods: Iterable[Object]) -> list[Object]:
    """The pods of a deployment, without those that are over (an evicted one stays for days)."""
    return [
        pod
        for pod in pods
        if _selects(deployment["spec"]["selector"], _labels(pod))
        and ("deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") not in _OVER)
        and _is_of(deployment, pod)
    ]


def _is_of(deployment: Object, pod: Object) -> bool:
    """Whether no other owns the pod: the selectors of two deployments may overlap, the names of ReplicaSets don't.

    A pod without an owner counts: the deployment may adopt it.
    """
    name = f"{deployment['metadata']['name']}-{_labels(pod).get('pod-template-hash')}"
    owners = pod["metadata"].get("ownerReferences") or []
    return all(each["kind"] == "ReplicaSet" and each["name"] == name for each in owners)


def warning_text(event: Object) -> str:
    """One event as a line."""
    about = event.get("involvedObject") or {}
    return f"{about.get('kind')} {about.get('name')}: {event.get('reason')}: {event.get('message', '').strip()}"


def _events(cluster: Cluster, wanted: Mapping[Name, int]) -> dict[str, Object]:
    namespaces = sorted({namespace for namespace, _ in wanted})
    return {each["metadata"]["uid"]: each for namespace in namespaces for each in cluster.list(EVENT, namespace)}


def _labels(pod: Object) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """A label selector as the API defines it."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    holds: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return all(
        holds[each["operator"]](each["key"], each.get("values") or [])
        for each in selector.get("matchExpressions") or []
    )
