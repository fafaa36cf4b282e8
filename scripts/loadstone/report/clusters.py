"""What an archive says of variants in a cluster: how many pods were declared, and how many were there."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadstone.archive.metadata import Metadata
from loadstone.archive.run_records import RunRecord
from loadstone.report.numbers import joined, span


def declared(described: Metadata) -> dict[str, Any]:
    """The cell's part of the declaration with numbers of pods as they are on its host; empty without a cluster."""
    cluster = described.target.get("cluster")
    if not isinstance(cluster, dict):
        return {}
    shown = {**cluster, "replicas": described.replicas}
    if _are_all_fixed(cluster.get("deployments")):
        del shown["replicas"]
    if dependencies := _dependencies(cluster):
        shown["dependencies"] = {
            name: {**dependency, "replicas": _on_host(dependency, described)}
            for name, dependency in dependencies.items()
        }
    return shown


def seen(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Number of pods by namespace and their images, as the cell's runs recorded them."""
    counts: dict[str, list[int]] = {}
    for record in records:
        for namespace, count in record.pods:
            counts.setdefault(namespace, []).append(count)
    images = sorted({image for record in records for image in record.images})
    pods = {namespace: span(found) if len(set(found)) > 1 else found[0] for namespace, found in counts.items()}
    return ({"pods": pods} if pods else {}) | ({"images": images} if images else {})


def replicas(cells: Iterable[Metadata]) -> str:
    """How many pods were declared: ``2 of each deployment, but redis 1, presidio 1``; empty without a cluster."""
    usual: list[str] = []
    others: list[str] = []
    for described in cells:
        cluster = described.target.get("cluster")
        if not isinstance(cluster, dict):
            continue
        deployments = cluster.get("deployments")
        fixed = deployments if isinstance(deployments, dict) else {}
        others += [f"{name} {count}" for name, count in fixed.items() if count is not None]
        others += [f"{name} {_on_host(each, described)}" for name, each in _dependencies(cluster).items()]
        if not _are_all_fixed(deployments) and described.replicas is not None:
            usual.append(str(described.replicas))
    of_each = f"{' or '.join(dict.fromkeys(usual))} of each deployment" if usual else ""
    return ", but ".join(filter(None, (of_each, joined(others))))


def _are_all_fixed(deployments: object) -> bool:
    return isinstance(deployments, dict) and None not in deployments.values()


def _dependencies(cluster: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = cluster.get("dependencies")
    return {name: each for name, each in (found if isinstance(found, dict) else {}).items() if isinstance(each, dict)}


def _on_host(dependency: Mapping[str, Any], described: Metadata) -> Any:
    """Pods of each deployment of a dependency: one number, or one by host."""
    count = dependency.get("replicas", 1)
    here = count.get(described.hostname, count.get("*")) if isinstance(count, dict) else count
    return "not said" if here is None else here
