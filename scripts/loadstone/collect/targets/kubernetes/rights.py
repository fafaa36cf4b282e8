"""What a session must be allowed to do: asked of the cluster before the first change, and written as Roles."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from loadstone.collect.targets.kubernetes.client import (
    ACCESS_REVIEW,
    AUTOSCALER,
    CONFIG_MAP,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    EVENT,
    JOB,
    LEASE,
    POD,
    POD_METRICS,
    SERVICE,
    Cluster,
    Kind,
    Object,
)
from loadstone.collect.targets.kubernetes.record import KINDS
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.errors import LoadstoneError

_NAME = "loadstone"
_POLL_S, _STARTING_S = 0.5, 10.0


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource of a namespace; `resource` may name a subresource (``deployments/scale``)."""

    namespace: str
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group} in the namespace {self.namespace}"


def needed(declared: Declared) -> list[Right]:
    """The least that a session with these declarations needs."""
    found = _rights(declared.namespace, LEASE, "get", "create", "update")
    found += _rights(declared.namespace, CONFIG_MAP, "get", "create", "update")
    for namespace in scaled_namespaces(declared):
        found += _rights(namespace, LEASE, "get", "create", "delete")
        found += _rights(namespace, DEPLOYMENT, "get", "list")
        found += _rights(namespace, DEPLOYMENT, "get", "update", subresource="scale")
        for kind in (POD, SERVICE, ENDPOINT_SLICE, EVENT, AUTOSCALER):
            found += _rights(namespace, kind, "list")
    for namespace in declared.sampled:  # incidents there are recorded too
        found += _rights(namespace, POD, "list")
        found += _rights(namespace, EVENT, "list")
    for variant in declared.variants.values():
        for change in variant.changes:
            found += _rights(change.namespace, DEPLOYMENT, "patch", "update")
    if declared.generators is not None:
        namespace = declared.generators.namespace
        found += _rights(namespace, JOB, "get", "list", "create", "delete")
        found += _rights(namespace, POD, "get", "list")
        found += _rights(namespace, POD, "get", "create", subresource="proxy")
    for flux in declared.flux:
        found += _rights(flux.namespace, KINDS[flux.kind], "get", "update")
    return sorted(set(found))


def useful(declared: Declared) -> list[Right]:
    """What is done without when it is not allowed: reading what pods use."""
    namespaces = {*scaled_namespaces(declared), *declared.sampled}
    return sorted(right for namespace in namespaces for right in _rights(namespace, POD_METRICS, "list"))


def scaled_namespaces(declared: Declared) -> list[str]:
    """Where deployments are scaled."""
    return sorted({namespace for variant in declared.variants.values() for namespace in variant.namespaces})


def check(cluster: Cluster, declared: Declared) -> None:
    """Raise one LoadstoneError that lists every right and every namespace that is missing."""
    wanted = needed(declared)
    missing = missing_rights(cluster, wanted)
    if not missing:
        return
    # Where nothing at all is allowed, the namespace itself may be missing.
    granted = {right.namespace for right in set(wanted) - set(missing)}
    nothing_granted = sorted({right.namespace for right in missing} - granted)
    exists = {namespace: cluster.has_namespace(namespace) for namespace in nothing_granted}
    lines = [f"there is no namespace {namespace}" for namespace in exists if exists[namespace] is False]
    lines += [str(right) for right in missing if exists.get(right.namespace) is not False]
    lines += [
        f"(whether there is a namespace {namespace} you may not know either: is its name right?)"
        for namespace in exists
        if exists[namespace] is None
    ]
    raise LoadstoneError(
        f"you lack rights that a sweep needs on {cluster.host}; nothing was changed. Missing:\n  "
        + "\n  ".join(lines)
        + "\n`snakemake --cores 1 rights` prints the Roles and RoleBindings to apply"
    )


def missing_rights(cluster: Cluster, rights: Iterable[Right]) -> list[Right]:
    """Those that the cluster does not grant."""
    missing, given_up = list(rights), time.monotonic() + _STARTING_S
    while True:
        # A server that has just started denies what it has not read the roles of yet.
        was_ready = cluster.is_ready()
        missing = [right for right in missing if not _is_allowed(cluster, right)]
        if was_ready or not missing or time.monotonic() > given_up:
            return missing
        time.sleep(_POLL_S)


def roles(declared: Declared, subject: Object) -> list[Object]:
    """A Role and a RoleBinding per namespace that grant exactly what is needed and useful to a subject."""
    found: list[Object] = []
    rights = [*needed(declared), *useful(declared)]
    for namespace in sorted({right.namespace for right in rights}):
        rules: dict[tuple[str, str], list[str]] = {}
        for right in rights:
            if right.namespace == namespace:
                rules.setdefault((right.group, right.resource), []).append(right.verb)
        metadata = {"name": _NAME, "namespace": namespace}
        found.append(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": metadata,
                "rules": [
                    {"apiGroups": [group], "resources": [resource], "verbs": verbs}
                    for (group, resource), verbs in rules.items()
                ],
            }
        )
        found.append(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": _NAME},
                "subjects": [subject],
            }
        )
    return found


def _rights(namespace: str, kind: Kind, *verbs: str, subresource: str = "") -> list[Right]:
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return [Right(namespace, kind.group, resource, verb) for verb in verbs]


def _is_allowed(cluster: Cluster, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {"namespace": right.namespace, "group": right.group, "resource": resource, "verb": right.verb}
    if subresource:
        asked["subresource"] = subresource
    answer = cluster.create(ACCESS_REVIEW, "", {"spec": {"resourceAttributes": asked}})
    return bool(answer["status"].get("allowed"))
