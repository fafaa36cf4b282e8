"""What a session will change in a cluster, found out before it changes anything: the objects, their fields, faults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadstone.collect.targets.base import Log
from loadstone.collect.targets.kubernetes import rights
from loadstone.collect.targets.kubernetes.changes import (
    IDLE,
    REPLICAS,
    STOPPED,
    SUSPEND,
    Field,
    differences,
    get,
    in_order,
)
from loadstone.collect.targets.kubernetes.client import AUTOSCALER, DEPLOYMENT, Cluster, ClusterError, Object
from loadstone.collect.targets.kubernetes.record import KINDS, Changed
from loadstone.collect.targets.kubernetes.settings import Change, Declared, Scaled, Variant, declared_target
from loadstone.errors import LoadstoneError

Name = tuple[str, str]  # namespace and name of a deployment
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Survey:
    """What a session will change, in the order in which it is put back: deployments first, Flux last."""

    objects: tuple[Changed, ...]
    notes: tuple[str, ...]


class _Surveyor:
    def __init__(self, cluster: Cluster, declared: Declared, needed: Iterable[str]) -> None:
        self.cluster = cluster
        self.declared = declared
        self.needed = set(needed)
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.objects: dict[Name, Object] = {}
        self.replicas: dict[Name, dict[str, int]] = {}
        self.after: dict[Name, dict[str, Object]] = {}
        self._listed: dict[str, dict[str, Object]] = {}

    def deployments(self, scaled: Scaled, *, of: str) -> list[Name]:
        """Those that are there; what is missing is a fault."""
        namespace = scaled.namespace
        if namespace not in self._listed:
            self._listed[namespace] = {
                each["metadata"]["name"]: each for each in self.cluster.list(DEPLOYMENT, namespace)
            }
        there = self._listed[namespace]
        if not there and self.cluster.has_namespace(namespace) is False:
            self._fault(of, f"there is no namespace {namespace}")
            return []
        names = tuple(sorted(there)) if scaled.names is None else scaled.names
        if not names:
            self._fault(of, f"the namespace {namespace} has no deployments")
        for name in names:
            if name not in there:
                self._fault(of, f"there is no deployment {name} in the namespace {namespace}")
        found = [(namespace, name) for name in names if name in there]
        self.objects |= {key: there[key[1]] for key in found}
        return found

    def variant(self, variant: Variant) -> None:
        for key in self.deployments(variant.scaled, of=variant.name):
            values = self.replicas.setdefault(key, {})
            values |= {IDLE: 0, variant.name: variant.scaled.pods_of(key[1])}
        if variant.name not in self.needed:
            return
        for change in variant.changes:
            self._change(variant, change)

    def dependencies(self, variant: Variant) -> None:
        for dependency in variant.dependencies:
            for key in self.deployments(dependency.scaled, of=f"{variant.name}: {dependency.name}"):
                values = self.replicas.setdefault(key, {})
                if IDLE in values:
                    self._fault(
                        variant.name, f"the deployment {'/'.join(key)} belongs to a variant and to {dependency.name}"
                    )
                    continue
                values[variant.name] = dependency.scaled.pods_of(key[1])
                if dependency.restart:
                    values[STOPPED] = 0

    def _change(self, variant: Variant, change: Change) -> None:
        """Ask the server what the patch would make of the object."""
        key = (change.namespace, change.deployment)
        if not self._listed[change.namespace]:
            return  # said already
        known = self.after.setdefault(key, {}).get(variant.name)
        try:
            if known is not None:
                raise LoadstoneError("it is declared twice for one deployment; join the two into one")
            if variant.name not in self.replicas.get(key, {}):
                raise LoadstoneError("that is not a deployment of the variant")
            before = self.objects[key]
            there = [each["name"] for each in _containers(before)]
            if strange := [name for name in change.containers if name not in there]:
                raise LoadstoneError(f"it has no container {strange[0]}, but {', '.join(there)}")
            after = self.cluster.patched(DEPLOYMENT, *key, in_order(change.patch, before))
            if get(after, REPLICAS) != get(before, REPLICAS):
                raise LoadstoneError("it sets spec.replicas; declare `replicas` instead")
        except LoadstoneError as error:
            if isinstance(error, ClusterError) and not error.status:
                raise
            self._fault(variant.name, f"its change of the deployment {'/'.join(key)} can't be made: {error}")
            return
        self.after[key][variant.name] = after

    def autoscalers(self) -> None:
        """A number of pods that changes by itself is no configuration to measure."""
        for namespace in sorted({namespace for namespace, _ in self.replicas}):
            for each in self.cluster.list(AUTOSCALER, namespace):
                aim = each["spec"]["scaleTargetRef"]
                if aim["kind"] == DEPLOYMENT.name and (namespace, aim["name"]) in self.replicas:
                    name = each["metadata"]["name"]
                    self.faults.append(
                        f"the HorizontalPodAutoscaler {namespace}/{name} would change the number of "
                        f"pods of {aim['name']} while it is measured; delete it for the time of the sweep"
                    )

    def flux(self) -> list[Changed]:
        found = []
        for each in self.declared.flux:
            kind = KINDS[each.kind]
            held = self.cluster.get(kind, each.namespace, each.name)
            if held is None:
                self.faults.append(f"there is no {each.kind} {each.namespace}/{each.name} (target.flux)")
                continue
            suspended = Field(SUSPEND, get(held, SUSPEND), {IDLE: True})
            found.append(Changed(kind, each.namespace, each.name, held["metadata"]["uid"], (suspended,)))
        return found

    def changed(self) -> list[Changed]:
        found = []
        for key, held in sorted(self.objects.items()):
            fields = differences(held, self.after.get(key, {}))
            if key in self.replicas:
                fields.append(Field(REPLICAS, get(held, REPLICAS), self.replicas[key]))
            if fields:
                found.append(Changed(DEPLOYMENT, *key, held["metadata"]["uid"], tuple(fields)))
        return found

    def _fault(self, where: str, what: str) -> None:
        if where.partition(":")[0] in self.needed:
            self.faults.append(f"{where}: {what}")
        else:
            self.notes.append(f"{where}: {what}; it is not measured now")


def check(config: Mapping[str, Any], variants: set[str], log: Log) -> tuple[Cluster, Declared, Survey]:
    """A cluster in which a sweep of these variants could begin, and what it would change there. Touches nothing.

    Raises LoadstoneError when the API server does not answer, and one that lists missing rights, or what is not as it
    is declared.
    """
    declared = Declared.of(declared_target(config), config["host"])
    cluster = Cluster(declared.context, patience_s=_PATIENCE_S, log=log)
    log(f"cluster {cluster.host}, {cluster.version()}; Lease and record in the namespace {declared.namespace}")
    rights.check(cluster, declared)
    for right in rights.missing_rights(cluster, rights.useful(declared)):
        log(f"not allowed, but not required either: {right}")
    return cluster, declared, survey(cluster, declared, variants)


def survey(cluster: Cluster, declared: Declared, needed: Iterable[str]) -> Survey:
    """Look at everything that measuring the variants `needed` will change; the others are only scaled to zero.

    Changes nothing (patches are tried as dry runs). Raises LoadstoneError that lists every fault.
    """
    it = _Surveyor(cluster, declared, needed)
    for variant in declared.variants.values():
        it.variant(variant)
    for name in declared.variants:
        if name in it.needed:
            it.dependencies(declared.variants[name])
    for namespace in declared.sampled:
        if cluster.has_namespace(namespace) is False:
            it.faults.append(f"there is no namespace {namespace} (target.resources.namespaces)")
    it.autoscalers()
    flux = it.flux()
    if it.faults:
        raise LoadstoneError(
            "the cluster differs from its declaration; nothing was changed:\n  " + "\n  ".join(it.faults)
        )
    return Survey((*it.changed(), *flux), tuple(it.notes))


def _containers(deployment: Object) -> list[Object]:
    spec = deployment["spec"]["template"]["spec"]
    return [*spec.get("containers", []), *spec.get("initContainers", [])]
