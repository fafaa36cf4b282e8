"""Kubernetes objects: their kinds, and what pods, selectors and events say. Nothing here talks to a cluster.

Objects are plain dictionaries as the API describes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of objects: its API ``version`` (``v1``, ``apps/v1``) and its name in paths (``deployments``)."""

    version: str
    plural: str
    name: str

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The address of one object, or of all in a namespace."""
        root = f"/apis/{self.version}" if self.group else f"/api/{self.version}"
        parts = ["namespaces", namespace] if namespace else []
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join([root, *(quote(part, safe="") for part in parts)])


POD = Kind("v1", "pods", "Pod")
SERVICE = Kind("v1", "services", "Service")
EVENT = Kind("v1", "events", "Event")
CONFIG_MAP = Kind("v1", "configmaps", "ConfigMap")
SECRET = Kind("v1", "secrets", "Secret")
NAMESPACE = Kind("v1", "namespaces", "Namespace")
JOB = Kind("batch/v1", "jobs", "Job")
DEPLOYMENT = Kind("apps/v1", "deployments", "Deployment")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
AUTOSCALER = Kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASE = Kind("coordination.k8s.io/v1", "leases", "Lease")
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
POD_METRICS = Kind("metrics.k8s.io/v1beta1", "pods", "PodMetrics")
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io/v1", "kustomizations", "Kustomization")
HELM_RELEASE = Kind("helm.toolkit.fluxcd.io/v2", "helmreleases", "HelmRelease")


def labels_of(found: Object) -> dict[str, str]:
    """The labels of any object."""
    return found["metadata"].get("labels") or {}


# --- pods ------------------------------------------------------------------------------------------------------------


def is_ready(pod: Object) -> bool:
    """Whether the pod's condition ``Ready`` is true."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_terminating(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Object) -> bool:
    """Whether all containers have ended for good; an evicted pod stays like this for days."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def container_statuses(pod: Object) -> list[Object]:
    """The statuses of its init containers, then of the others."""
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def pod_state(pod: Object) -> str:
    """``web-1 is Pending, not ready (Unschedulable: 0/3 nodes are available)``."""
    status = pod.get("status", {})
    reasons = [str(status[name]) for name in ("reason", "message") if status.get(name)]
    reasons += [
        f"{each['name']} {waiting.get('reason', 'waits')}: {waiting.get('message', '')}".rstrip(": ")
        for each in container_statuses(pod)
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


# --- selectors -------------------------------------------------------------------------------------------------------


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector of the API (``matchLabels``, ``matchExpressions``) matches these labels."""

    def holds(rule: Mapping[str, Any]) -> bool:
        exists, is_listed = rule["key"] in labels, labels.get(rule["key"]) in (rule.get("values") or [])
        return {"In": is_listed, "NotIn": not is_listed, "Exists": exists, "DoesNotExist": not exists}[rule["operator"]]

    equal = (selector.get("matchLabels") or {}).items()
    return equal <= labels.items() and all(map(holds, selector.get("matchExpressions") or []))


# --- events ----------------------------------------------------------------------------------------------------------


def newer_events(before: Mapping[str, Object], after: Mapping[str, Object]) -> Iterator[tuple[Object, int]]:
    """Events that are new or were counted up, and by how much; both mappings are by uid."""
    for uid, event in after.items():
        if (count := _count(event) - _count(before.get(uid))) > 0:
            yield event, count


def _count(event: Object | None) -> int:
    if event is None:
        return 0
    return max(event.get("count") or 1, (event.get("series") or {}).get("count") or 0)
