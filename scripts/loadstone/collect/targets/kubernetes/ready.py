"""Waits for a cluster: until pods are gone, or until they are ready, reachable, and no others are left."""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.kubernetes import objects
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.objects import Object

Name = tuple[str, str]  # namespace and name of a deployment
_POLL_S = 0.5
_SHOWN = 10
_COUNTS = ("updatedReplicas", "readyReplicas", "availableReplicas", "replicas")


def wait(cluster: Cluster, wanted: Mapping[Name, int], limit_s: float, check: Callable[[], object]) -> None:
    """Wait until each deployment has its wanted pods: updated, ready, and no others, not even terminating ones.

    Unless no pods are wanted at all, Services must lead to them too. `check` is called at each look and may raise.
    Raises RunFailedError, with the cluster's warnings, after `limit_s`.
    """
    up = any(wanted.values())
    before = _events(cluster, wanted)
    deadline = time.monotonic() + limit_s
    while missing := not_ready(cluster, wanted, services=up):
        check()
        if time.monotonic() > deadline:
            since = [event for event, _ in objects.newer_events(before, _events(cluster, wanted))]
            warnings = tuple(_warning_text(event) for event in since if event.get("type") == "Warning")
            failure, shown = "not ready" if up else "not gone", "; ".join(missing[:_SHOWN])
            raise RunFailedError(f"the pods were {failure} within {limit_s:.0f} s: {shown}", warnings[-50:])
        time.sleep(_POLL_S)


def not_ready(cluster: Cluster, wanted: Mapping[Name, int], *, services: bool) -> list[str]:
    """Texts for everything that is not as wanted yet."""
    found = []
    for namespace in sorted({namespace for namespace, _ in wanted}):
        deployments = {each["metadata"]["name"]: each for each in cluster.list(objects.DEPLOYMENT, namespace)}
        pods = cluster.list(objects.POD, namespace)
        wanted_pods: list[Object] = []
        for (_, name), count in sorted(each for each in wanted.items() if each[0][0] == namespace):
            if name not in deployments:
                found.append(f"the deployment {namespace}/{name} was deleted")
                continue
            own = pods_of(deployments[name], pods)
            wanted_pods += own
            found += [f"{namespace}/{name}: {what}" for what in _deployment_problems(deployments[name], own, count)]
        if services and not found:
            found += _service_problems(cluster, namespace, pods, wanted_pods)
    return found


def _deployment_problems(deployment: Object, pods: list[Object], count: int) -> list[str]:
    spec, status, metadata = deployment["spec"], deployment.get("status", {}), deployment["metadata"]
    if spec.get("replicas") != count:
        return [f"somebody set its replicas to {spec.get('replicas')} instead of {count}"]
    if status.get("observedGeneration", 0) < metadata["generation"]:
        return ["its change has not been rolled out yet"]
    found = [f"pod {pod['metadata']['name']} is terminating" for pod in pods if objects.is_terminating(pod)]
    living = [pod for pod in pods if not objects.is_terminating(pod)]
    if not found and len(living) != count:
        found.append(f"{len(living)} pods instead of {count}")
    states = {name: status.get(name, 0) for name in _COUNTS}
    found += [f"{name} {number} of {count}" for name, number in states.items() if number != count][:1]
    return found + [f"pod {objects.pod_state(pod)}" for pod in living if count and not objects.is_ready(pod)]


def _service_problems(cluster: Cluster, namespace: str, pods: list[Object], wanted_pods: list[Object]) -> list[str]:
    """Services in front of wanted pods whose endpoints are not exactly their ready pods."""
    slices = cluster.list(objects.ENDPOINT_SLICE, namespace)
    found = []
    for service in cluster.list(objects.SERVICE, namespace):
        selector = service["spec"].get("selector") if service["spec"].get("type") != "ExternalName" else None
        behind = [pod for pod in pods if selector and selector.items() <= objects.labels_of(pod).items()]
        if not any(pod in wanted_pods for pod in behind):
            continue
        name = service["metadata"]["name"]
        endpoints = [
            each
            for one in slices
            if objects.labels_of(one).get("kubernetes.io/service-name") == name
            for each in one.get("endpoints") or []
        ]
        reachable = {(each.get("targetRef") or {}).get("uid") for each in endpoints if _serves(each)}
        expected = {pod["metadata"]["uid"] for pod in behind if objects.is_ready(pod)}
        if without_pods := [each for each in endpoints if not (each.get("targetRef") or {}).get("uid")]:
            addresses = [address for each in without_pods for address in each.get("addresses") or ["nowhere"]]
            where = ", ".join(addresses[:_SHOWN])
            found.append(f"the Service {namespace}/{name} also routes to {where}: an EndpointSlice without pods")
        elif reachable != expected or not all(map(_serves, endpoints)):
            what = f"{len(reachable)} ready endpoints of {len(endpoints)} for {len(expected)} ready pods"
            found.append(f"the Service {namespace}/{name} has {what}")
    return found


def _serves(endpoint: Object) -> bool:
    conditions = endpoint.get("conditions") or {}
    return bool(conditions.get("ready", True)) and not conditions.get("terminating")


def pods_of(deployment: Object, pods: Iterable[Object]) -> list[Object]:
    """The pods of a deployment, without finished ones.

    The selectors of two deployments may overlap, so a pod that has an owner must be of a ReplicaSet of this one. A pod
    without an owner counts: the deployment may adopt it.
    """
    found = []
    for pod in pods:
        replica_set = f"{deployment['metadata']['name']}-{objects.labels_of(pod).get('pod-template-hash')}"
        owners = [(each["kind"], each["name"]) for each in pod["metadata"].get("ownerReferences") or []]
        if (
            objects.selects(deployment["spec"]["selector"], objects.labels_of(pod))
            and (objects.is_terminating(pod) or not objects.is_finished(pod))
            and all(owner == ("ReplicaSet", replica_set) for owner in owners)
        ):
            found.append(pod)
    return found


def _warning_text(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind')} {about.get('name')}: {event.get('reason')}: {event.get('message', '').strip()}"


def _events(cluster: Cluster, wanted: Mapping[Name, int]) -> dict[str, Object]:
    namespaces = sorted({namespace for namespace, _ in wanted})
    listed = chain.from_iterable(cluster.list(objects.EVENT, namespace) for namespace in namespaces)
    return {each["metadata"]["uid"]: each for each in listed}
