"""A mark in each namespace of which a sweep scales deployments.

Sweeps whose Leases are in one namespace wait for each other. Two that were given another `target.namespace` each would
not: the mark, a Lease object that nobody renews, tells the second. It is part of the record, and goes when that is put
back; so one that is there belongs to a sweep that is under way or was killed.

The mark is recorded before it exists, and nobody waits for its end: only the Lease in that sweep's own namespace shows
whether the sweep lives, and others may have no right to read it.
"""

from loadstone.collect.targets.kubernetes.apply import Writer
from loadstone.collect.targets.kubernetes.client import LEASE, Cluster, ClusterError, ConflictError, Object
from loadstone.collect.targets.kubernetes.record import Record
from loadstone.errors import LoadstoneError, printable

NAME = "loadstone-claim"
_OF = "loadstone/lease-namespace"


def take(writer: Writer, record: Record, lease_namespace: str) -> None:
    """Mark the namespaces of a record. Raises LoadstoneError when one is marked by a sweep with another Lease."""
    annotations = {_OF: lease_namespace, "loadstone/since": record.since}
    for namespace in record.claims:
        body = {"metadata": {"name": NAME, "annotations": annotations}, "spec": {"holderIdentity": record.holder}}
        writer.fence()
        try:
            writer.cluster.create(LEASE, namespace, body)
        except ConflictError:
            if text := foreign(writer.cluster, namespace, lease_namespace):
                raise LoadstoneError(text) from None


def foreign(cluster: Cluster, namespace: str, lease_namespace: str) -> str:
    """Who has marked a namespace under another Lease, and what to do; empty when nobody has."""
    held = cluster.get(LEASE, namespace, NAME)
    if held is None or _lease_namespace(held) == lease_namespace:
        return ""
    metadata, other = held["metadata"], _lease_namespace(held)
    who = (held.get("spec") or {}).get("holderIdentity") or "somebody"
    return printable(
        f"deployments of the namespace {namespace} are scaled by the sweep of {who} (since "
        f"{(metadata.get('annotations') or {}).get('loadstone/since', '?')}), whose Lease is in the namespace {other} "
        "instead of "
        f"{lease_namespace}: give both the same target.namespace, so that they wait for each other. If that sweep was "
        f"killed, put back what it changed: `snakemake --cores 1 restore` with `namespace: {other}`"
    )


def give_back(writer: Writer, record: Record, lease_namespace: str) -> list[str]:
    """Remove the marks of a record; texts for what the cluster refused."""
    refused = []
    for namespace in record.claims:
        try:
            held = writer.cluster.get(LEASE, namespace, NAME)
            if held is not None and _lease_namespace(held) == lease_namespace:
                writer.fence()
                writer.cluster.delete(LEASE, namespace, NAME, held["metadata"]["uid"])
        except ClusterError as error:
            if error.is_transient:
                raise
            refused.append(f"Lease {namespace}/{NAME}: {error}")
    return refused


def _lease_namespace(held: Object) -> str:
    return str((held["metadata"].get("annotations") or {}).get(_OF, "?"))
