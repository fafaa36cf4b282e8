"""What the configuration declares of a cluster: its variants, resolved for one host. Nothing here asks the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone.archive.metadata import parse_duration
from loadstone.config.target import replicas_for
from loadstone.errors import LoadstoneError


@dataclass(frozen=True)
class Scaled:
    """Deployments of a namespace and how many pods each is to have; `names` None: all of the namespace."""

    namespace: str
    names: tuple[str, ...] | None
    replicas: int
    fixed: Mapping[str, int] = field(default_factory=dict)

    def pods_of(self, deployment: str) -> int:
        return self.fixed.get(deployment, self.replicas)


@dataclass(frozen=True)
class Dependency:
    """Deployments that must be up before a variant's runs, freshly started if `restart`."""

    name: str
    scaled: Scaled
    restart: bool


@dataclass(frozen=True)
class Change:
    """A strategic merge patch of one deployment, in force while its variant is measured."""

    namespace: str
    deployment: str
    patch: dict[str, Any]
    containers: tuple[str, ...] = ()  # that must be there


@dataclass(frozen=True)
class Variant:
    """One configuration under comparison, as it lies in the cluster."""

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
    """A Flux object to suspend meanwhile. `kind` is ``Kustomization`` or ``HelmRelease``."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Generators:
    """Load generators as pods: `image` holds `command`, which is the program ``paced``; `cpu` and `memory` of each."""

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

    `namespace` is where the Lease and the record are; `sampled` are namespaces of which the use of CPU and memory is
    sampled besides those of the variants.
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

    @classmethod
    def of(cls, target: Mapping[str, Any], host: str, *, only_cluster: bool = False) -> "Declared":
        """Raises LoadstoneError when a number of replicas is not declared for this host.

        `only_cluster` leaves out the variants.
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
        count = replicas_for(dependency.get("replicas", 1), host)
        scaled = _scaled(dependency["namespace"], dependency.get("deployments"), count)
        dependencies.append(Dependency(each, scaled, dependency.get("restart", False)))
    count = replicas_for(declared.get("replicas", target.get("replicas", 1)), host)
    scaled = _scaled(namespace, declared.get("deployments"), count)
    changes = tuple(
        Change(namespace, each["deployment"], _patch(each), (*each.get("image", ()), *each.get("env", ())))
        for each in declared.get("changes", [])
    )
    return Variant(name, scaled, tuple(dependencies), changes)


def _scaled(namespace: str, deployments: list[str] | Mapping[str, int | None] | None, count: int) -> Scaled:
    if isinstance(deployments, Mapping):
        fixed = {name: number for name, number in deployments.items() if number is not None}
        return Scaled(namespace, tuple(deployments), count, fixed)
    return Scaled(namespace, None if deployments is None else tuple(deployments), count)


def _patch(change: Mapping[str, Any]) -> dict[str, Any]:
    """Image and environment, by container, in front of a patch of the declared text."""
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
    """Two patches as one: mappings joined key by key, elements of lists by their names, else the second."""
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
