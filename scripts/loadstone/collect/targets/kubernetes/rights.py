"""The rights that a session needs: checked in the cluster before the first change, and written as Roles."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from loadstone.collect.targets.kubernetes import objects
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.objects import Kind, Object
from loadstone.collect.targets.kubernetes.record import KINDS
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.errors import LoadstoneError

_NAME = "loadstone"
_RBAC = "rbac.authorization.k8s.io"
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
    """The rights without which a session with these declarations is refused."""
    found = _rights(declared.namespace, objects.LEASE, "get", "create", "update")
    found += _rights(declared.namespace, objects.CONFIG_MAP, "get", "create", "update")
    for namespace in declared.scaled_namespaces:
        found += _rights(namespace, objects.LEASE, "get", "create", "delete")
        found += _rights(namespace, objects.DEPLOYMENT, "get", "list")
        found += _rights(namespace, objects.DEPLOYMENT, "get", "update", subresource="scale")
        for kind in (objects.POD, objects.SERVICE, objects.ENDPOINT_SLICE, objects.EVENT, objects.AUTOSCALER):
            found += _rights(namespace, kind, "list")
    for namespace in declared.sampled:  # incidents there are recorded too
        found += _rights(namespace, objects.POD, "list")
        found += _rights(namespace, objects.EVENT, "list")
    for variant in declared.variants.values():
        for change in variant.changes:
            found += _rights(change.namespace, objects.DEPLOYMENT, "patch", "update")
    if declared.generators is not None:
        namespace = declared.generators.namespace
        found += _rights(namespace, objects.JOB, "get", "list", "create", "delete")
        found += _rights(namespace, objects.POD, "get", "list")
        found += _rights(namespace, objects.POD, "get", "create", subresource="proxy")
        if declared.has_tls_files:
            found += _rights(namespace, objects.SECRET, "list", "create", "update", "delete")
    for flux in declared.flux:
        found += _rights(flux.namespace, KINDS[flux.kind], "get", "update")
    return sorted(set(found))


def useful(declared: Declared) -> list[Right]:
    """Rights without which a session works too: reading the CPU and memory of pods."""
    namespaces = {*declared.scaled_namespaces, *declared.sampled}
    return sorted(right for namespace in namespaces for right in _rights(namespace, objects.POD_METRICS, "list"))


def check(cluster: Cluster, declared: Declared) -> None:
    """Raise one LoadstoneError that lists every right and every namespace that is missing."""
    wanted = needed(declared)
    missing = missing_rights(cluster, wanted)
    if not missing:
        return
    # A namespace in which nothing at all is allowed may not exist.
    granted = {right.namespace for right in set(wanted) - set(missing)}
    doubtful = sorted({right.namespace for right in missing} - granted)
    exists = {namespace: cluster.has_namespace(namespace) for namespace in doubtful}
    lines = [f"there is no namespace {namespace}" for namespace, found in exists.items() if found is False]
    lines += [str(right) for right in missing if exists.get(right.namespace) is not False]
    lines += [
        f"(you may not see whether the namespace {namespace} exists either: check its name)"
        for namespace, found in exists.items()
        if found is None
    ]
    raise LoadstoneError(
        f"you lack rights that a sweep needs on {cluster.host}; nothing was changed. Missing:\n  "
        + "\n  ".join(lines)
        + "\n`snakemake --cores 1 rights` prints the Roles and RoleBindings to apply"
    )


def missing_rights(cluster: Cluster, rights: Iterable[Right]) -> list[Right]:
    """The rights that the cluster does not grant."""
    missing, given_up = list(rights), time.monotonic() + _STARTING_S
    while True:
        # A server that has just started denies everything whose roles it has not read yet.
        was_ready = cluster.is_ready()
        missing = [right for right in missing if not _is_allowed(cluster, right)]
        if was_ready or not missing or time.monotonic() > given_up:
            return missing
        time.sleep(_POLL_S)


def roles(declared: Declared, subject: Object) -> list[Object]:
    """A Role and a RoleBinding per namespace that grant a subject exactly the needed and useful rights."""
    found: list[Object] = []
    rights = sorted([*needed(declared), *useful(declared)])
    for namespace, own in groupby(rights, lambda right: right.namespace):
        rules = [
            {"apiGroups": [group], "resources": [resource], "verbs": [right.verb for right in same]}
            for (group, resource), same in groupby(own, lambda right: (right.group, right.resource))
        ]
        common = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": _NAME, "namespace": namespace}}
        reference = {"apiGroup": _RBAC, "kind": "Role", "name": _NAME}
        found.append({**common, "kind": "Role", "rules": rules})
        found.append({**common, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    return found


def _rights(namespace: str, kind: Kind, *verbs: str, subresource: str = "") -> list[Right]:
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return [Right(namespace, kind.group, resource, verb) for verb in verbs]


def _is_allowed(cluster: Cluster, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {"namespace": right.namespace, "group": right.group, "resource": resource, "verb": right.verb}
    if subresource:
        asked["subresource"] = subresource
    answer = cluster.create(objects.ACCESS_REVIEW, "", {"spec": {"resourceAttributes": asked}})
    return bool(answer["status"].get("allowed"))
