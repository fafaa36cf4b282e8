"""Finds out what a session will change in a cluster, before anything is changed, and what differs from the target."""

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
from loadstone.collect.targets.kubernetes.client import Cluster, ClusterError
from loadstone.collect.targets.kubernetes.objects import AUTOSCALER, DEPLOYMENT, Object
from loadstone.collect.targets.kubernetes.record import KINDS, Changed
from loadstone.collect.targets.kubernetes.settings import Change, Declared, Scaled, Variant, declared_target
from loadstone.errors import LoadstoneError

Name = tuple[str, str]  # namespace and name of a deployment
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Survey:
    """What a session will change, in the order in which it is restored: deployments first, Flux last."""

    objects: tuple[Changed, ...]
    notes: tuple[str, ...]


class _Surveyor:
    def __init__(self, cluster: Cluster, declared: Declared, needed: Iterable[str]) -> None:
        self.cluster = cluster
        self.declared = declared
        self.needed = set(needed)
        self.faults: list[str] = []
        self.notes: list[str] = []
        # Of deployments: by namespace and name, all that exist and those that the session uses; the replicas that it
        # sets by the keys of `Field.ours`; the object as patched for each variant.
        self.existing = {
            namespace: {each["metadata"]["name"]: each for each in cluster.list(DEPLOYMENT, namespace)}
            for namespace in declared.scaled_namespaces
        }
        self.used: dict[Name, Object] = {}
        self.replicas: dict[Name, dict[str, int]] = {}
        self.patched: dict[Name, dict[str, Object]] = {}

    def deployments(self, scaled: Scaled, variant: str, dependency: str | None = None) -> list[Name]:
        """The existing ones of those that are declared; a missing one is a fault."""
        namespace = scaled.namespace
        existing = self.existing[namespace]
        if not existing and self.cluster.has_namespace(namespace) is False:
            self._fault(variant, f"there is no namespace {namespace}", dependency)
            return []
        names = tuple(sorted(existing)) if scaled.names is None else scaled.names
        if not names:
            self._fault(variant, f"the namespace {namespace} has no deployments", dependency)
        for name in names:
            if name not in existing:
                self._fault(variant, f"there is no deployment {name} in the namespace {namespace}", dependency)
        found = [(namespace, name) for name in names if name in existing]
        self.used |= {key: existing[key[1]] for key in found}
        return found

    def variant(self, variant: Variant) -> None:
        for key in self.deployments(variant.scaled, variant.name):
            self.replicas.setdefault(key, {}).update({IDLE: 0, variant.name: variant.scaled.pods_of(key[1])})
        if variant.name in self.needed:
            for change in variant.changes:
                self._change(variant, change)

    def dependencies(self, variant: Variant) -> None:
        for dependency in variant.dependencies:
            for key in self.deployments(dependency.scaled, variant.name, dependency.name):
                values = self.replicas.setdefault(key, {})
                if IDLE in values:
                    what = f"the deployment {'/'.join(key)} belongs to a variant and to {dependency.name}"
                    self._fault(variant.name, what)
                    continue
                values[variant.name] = dependency.scaled.pods_of(key[1])
                if dependency.restart:
                    values[STOPPED] = 0

    def _change(self, variant: Variant, change: Change) -> None:
        """Get the patched object from the server."""
        key = (change.namespace, change.deployment)
        if not self.existing[change.namespace]:
            return  # already a fault
        patched = self.patched.setdefault(key, {})
        try:
            if variant.name in patched:
                raise LoadstoneError("it is declared twice for one deployment; merge the two")
            if variant.name not in self.replicas.get(key, {}):
                raise LoadstoneError("that is not a deployment of the variant")
            before = self.used[key]
            pods = before["spec"]["template"]["spec"]
            existing = [each["name"] for each in [*pods.get("containers", []), *pods.get("initContainers", [])]]
            if unknown := [name for name in change.containers if name not in existing]:
                raise LoadstoneError(f"it has no container {unknown[0]}, but {', '.join(existing)}")
            after = self.cluster.patched(DEPLOYMENT, *key, in_order(change.patch, before))
            if get(after, REPLICAS) != get(before, REPLICAS):
                raise LoadstoneError("it sets spec.replicas; declare `replicas` instead")
        except LoadstoneError as error:
            if isinstance(error, ClusterError) and not error.status:
                raise
            self._fault(variant.name, f"its change of the deployment {'/'.join(key)} can't be made: {error}")
        else:
            patched[variant.name] = after

    def autoscalers(self) -> None:
        """A HorizontalPodAutoscaler of a scaled deployment is a fault, because it would change what is measured."""
        for namespace in sorted({namespace for namespace, _ in self.replicas}):
            for each in self.cluster.list(AUTOSCALER, namespace):
                aim = each["spec"]["scaleTargetRef"]
                if aim["kind"] == DEPLOYMENT.name and (namespace, aim["name"]) in self.replicas:
                    name = each["metadata"]["name"]
                    self.faults.append(
                        f"the HorizontalPodAutoscaler {namespace}/{name} would change the number of pods of "
                        f"{aim['name']} during runs; delete it for the time of the sweep"
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
        for key, held in sorted(self.used.items()):
            fields = differences(held, self.patched.get(key, {}))
            if key in self.replicas:
                fields.append(Field(REPLICAS, get(held, REPLICAS), self.replicas[key]))
            if fields:
                found.append(Changed(DEPLOYMENT, *key, held["metadata"]["uid"], tuple(fields)))
        return found

    def _fault(self, variant: str, what: str, dependency: str | None = None) -> None:
        where = variant if dependency is None else f"{variant}: {dependency}"
        if variant in self.needed:
            self.faults.append(f"{where}: {what}")
        else:
            self.notes.append(f"{where}: {what}; it is not measured now")


def check(config: Mapping[str, Any], variants: set[str], log: Log) -> tuple[Cluster, Declared, Survey]:
    """Check that a sweep of these variants could begin; also returns what it would change. Changes nothing.

    Raises LoadstoneError when the API server does not answer, when rights are missing, and when the cluster differs
    from what is declared; the text lists everything.
    """
    declared = Declared.of(declared_target(config), config["host"])
    cluster = Cluster(declared.context, patience_s=_TIMEOUT_S, log=log)
    log(f"cluster {cluster.host}, {cluster.version()}; Lease and record in the namespace {declared.namespace}")
    rights.check(cluster, declared)
    for right in rights.missing_rights(cluster, rights.useful(declared)):
        log(f"not allowed, but not required either: {right}")
    return cluster, declared, survey(cluster, declared, variants)


def survey(cluster: Cluster, declared: Declared, needed: Iterable[str]) -> Survey:
    """Find everything that measuring the variants `needed` will change; other variants are only scaled to zero.

    Changes nothing: patches are dry runs. Raises LoadstoneError that lists every fault.
    """
    surveyor = _Surveyor(cluster, declared, needed)
    for variant in declared.variants.values():
        surveyor.variant(variant)
    for variant in declared.variants.values():
        if variant.name in surveyor.needed:
            surveyor.dependencies(variant)
    for namespace in declared.sampled:
        if cluster.has_namespace(namespace) is False:
            surveyor.faults.append(f"there is no namespace {namespace} (target.resources.namespaces)")
    surveyor.autoscalers()
    flux = surveyor.flux()
    if surveyor.faults:
        raise LoadstoneError(
            "the cluster differs from its declaration; nothing was changed:\n  " + "\n  ".join(surveyor.faults)
        )
    return Survey((*surveyor.changed(), *flux), tuple(surveyor.notes))
