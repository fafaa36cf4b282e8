"""The target of kind ``kubernetes`` as declared, resolved for one host. Nothing here talks to the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone.archive.metadata import parse_duration
from loadstone.config.target import replicas_for
from loadstone.errors import LoadstoneError


@dataclass(frozen=True)
class Scaled:
    """Deployments of a namespace (`names` None: all) and the number of pods that each should have."""

    namespace: str
    names: tuple[str, ...] | None
    replicas: int
    fixed: Mapping[str, int] = field(default_factory=dict)

    def pods_of(self, deployment: str) -> int:
        return self.fixed.get(deployment, self.replicas)


@dataclass(frozen=True)
class Dependency:
    """Deployments that must be ready before a variant's runs, restarted before each if `restart`."""

    name: str
    scaled: Scaled
    restart: bool


@dataclass(frozen=True)
class Change:
    """A strategic merge patch of one deployment while its variant is measured; `containers` must exist in it."""

    namespace: str
    deployment: str
    patch: dict[str, Any]
    containers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One configuration under comparison, as deployed in the cluster."""

    name: str
    scaled: Scaled
    dependencies: tuple[Dependency, ...]
    changes: tuple[Change, ...]

    @property
    def namespaces(self) -> list[str]:
        """Its own namespace, then those of its dependencies."""
        return list(dict.fromkeys([self.scaled.namespace, *(each.scaled.namespace for each in self.dependencies)]))


@dataclass(frozen=True)
class Flux:
    """A Flux object to suspend during the sweep. `kind` is ``Kustomization`` or ``HelmRelease``."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Generators:
    """Load generators as pods: `image` has `command`, the program ``paced``; `cpu` and `memory` are of each pod."""

    image: str
    namespace: str
    command: Sequence[str] = ("paced",)
    port: int = 8900
    cpu: str | float = "1"
    memory: str | float = "1Gi"
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Declared:
    """The target of kind ``kubernetes``, resolved for one host.

    `namespace` is that of the Lease and the record. CPU and memory are sampled in the namespaces of the variants and in
    those of `sampled`.
    """

    context: str | None
    namespace: str
    lease_duration_s: float
    patience_s: float
    ready_timeout_s: float
    sampled: tuple[str, ...]
    flux: tuple[Flux, ...]
    variants: Mapping[str, Variant]
    generators: Generators | None = None
    has_tls_files: bool = False  # of any variant, for load generators as pods

    @property
    def scaled_namespaces(self) -> list[str]:
        """Namespaces in which deployments are scaled."""
        return sorted({namespace for variant in self.variants.values() for namespace in variant.namespaces})

    @classmethod
    def of(cls, target: Mapping[str, Any], host: str, *, only_cluster: bool = False) -> "Declared":
        """Resolve a target, without its variants if `only_cluster`.

        Raises LoadstoneError when a number of replicas is not declared for this host.
        """
        namespace = target.get("namespace", "loadstone")
        generators = target.get("generators")
        return cls(
            context=target.get("context"),
            namespace=namespace,
            lease_duration_s=parse_duration(target.get("lease_duration")) or 30.0,
            patience_s=parse_duration(target.get("patience")) or 120.0,
            ready_timeout_s=parse_duration(target.get("ready_timeout")) or 300.0,
            sampled=tuple(target.get("resources", {}).get("namespaces", [])),
            flux=tuple(Flux(**each) for each in target.get("flux", [])),
            generators=None if generators is None else Generators(**{"namespace": namespace, **generators}),
            has_tls_files=any(
                {"ca", "cert"} & variant.get("tls", {}).keys() for variant in target.get("variants", {}).values()
            ),
            variants={} if only_cluster else {name: _variant(target, name, host) for name in target["variants"]},
        )


def declared_target(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration's target. Raises LoadstoneError unless it is of kind ``kubernetes``."""
    target: Mapping[str, Any] = config.get("target", {})
    if target.get("kind") != "kubernetes":
        raise LoadstoneError("the configuration declares no Kubernetes target (see docs/kubernetes.md)")
    return target


def _variant(target: Mapping[str, Any], name: str, host: str) -> Variant:
    declared = target["variants"][name]
    namespace = declared.get("namespace", name)
    dependencies = []
    for each in declared.get("dependencies", []):
        dependency = target["dependencies"][each]
        scaled = _scaled(dependency, dependency["namespace"], 1, host)
        dependencies.append(Dependency(each, scaled, dependency.get("restart", False)))
    changes = tuple(
        Change(namespace, each["deployment"], _patch(each), (*each.get("image", ()), *each.get("env", ())))
        for each in declared.get("changes", [])
    )
    return Variant(name, _scaled(declared, namespace, target.get("replicas", 1), host), tuple(dependencies), changes)


def _scaled(declared: Mapping[str, Any], namespace: str, default_replicas: Any, host: str) -> Scaled:
    names = declared.get("deployments")
    fixed = {name: count for name, count in names.items() if count is not None} if isinstance(names, Mapping) else {}
    replicas = replicas_for(declared.get("replicas", default_replicas), host)
    return Scaled(namespace, None if names is None else tuple(names), replicas, fixed)


def _patch(change: Mapping[str, Any]) -> dict[str, Any]:
    """`image` and `env` as a strategic merge patch, merged with the declared `patch`."""
    containers: dict[str, dict[str, Any]] = {}
    for container, image in change.get("image", {}).items():
        containers.setdefault(container, {"name": container})["image"] = image
    for container, values in change.get("env", {}).items():
        entries = [
            {"name": name, "$patch": "delete"} if value is None else {"name": name, "value": value, "valueFrom": None}
            for name, value in values.items()
        ]
        containers.setdefault(container, {"name": container})["env"] = entries
    short = {"spec": {"template": {"spec": {"containers": list(containers.values())}}}} if containers else {}
    found: dict[str, Any] = _merged(short, change.get("patch", {}))
    return found


def _merged(one: Any, other: Any) -> Any:
    """Two patches as one: mappings are merged by key, lists by the names of their elements, else the second wins."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = {key: _merged(one[key], other[key]) for key in one if key in other}
        return {**one, **other, **both}
    if not (isinstance(one, list) and isinstance(other, list)):
        return other
    found = {_name(each, index): each for index, each in enumerate(one)}
    for index, each in enumerate(other, start=len(one)):
        name = _name(each, index)
        found[name] = _merged(found[name], each) if name in found else each
    return list(found.values())


def _name(element: Any, index: int) -> Any:
    return element.get("name", index) if isinstance(element, dict) else index
