"""Bringing a cluster into a wanted state, and back. Repeatable: what is as wanted is not touched.

Jobs only move between states that the record knows, and every step may be repeated from any of them, so a killed job
needs no clean-up of its own.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from loadstone.collect.targets.kubernetes.changes import REPLICAS, STOPPED, Field, get, rewritten
from loadstone.collect.targets.kubernetes.client import (
    DEPLOYMENT,
    Cluster,
    ClusterError,
    ConflictError,
    NotFoundError,
    noting_refusals,
)
from loadstone.collect.targets.kubernetes.record import Changed, Record

Wanted = Callable[[Field], Any]
_TRY_S, _PAUSE_S = 5.0, 0.2
_THEIRS = "is now {now}, set by somebody else; before the sweep it was {was}"


@dataclass(frozen=True)
class Writer:
    """Who changes a cluster, as long as it is his: `fence` is called before each write, and raises when it is not."""

    cluster: Cluster
    fence: Callable[[], object]


@dataclass
class Outcome:
    """How many fields were written; texts for what others had changed, which is left, and what the cluster refused."""

    written: int = 0
    left: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.written += other.written
        self.left += other.left
        self.refused += other.refused


def put_back(writer: Writer, record: Record) -> Outcome:
    """Everything as it was before the record's session, except what others changed meanwhile; as much as is allowed."""
    outcome = Outcome()
    for changed in record.objects:
        for fields in (_others(changed), _replicas(changed)):
            with noting_refusals(outcome.refused, changed):
                outcome.add(_write(writer, changed, fields, lambda each: each.before))
    return outcome


def deviations(cluster: Cluster, record: Record, variant: str) -> tuple[list[str], dict[str, Any]]:
    """(what is not as measuring a variant wants it, in words; the generation of each object that is measured)."""
    found, generations = [], {}
    for changed in record.objects:
        held = cluster.get(changed.kind, changed.namespace, changed.name)
        if held is None or held["metadata"]["uid"] != changed.uid:
            found.append(f"{changed} was deleted or recreated by somebody else")
            continue
        for each in changed.fields:
            texts = each.texts(each.wanted(variant), get(held, each.path), "is {now} instead of {was}")
            found += [f"{changed}: {text}" for text in texts]
        generations[str(changed)] = held["metadata"].get("generation")
    return found, generations


def idle(each: Field) -> Any:
    """Wanted while no variant is measured: none up, nothing patched, Flux suspended."""
    return each.wanted(None)


def prepared(variant: str) -> Wanted:
    """Wanted before a variant's pods come: all others down, the variant's changes in force."""

    def wanted(each: Field) -> Any:
        if each.path != REPLICAS or variant not in each.ours:
            return each.wanted(variant)
        return each.ours.get(STOPPED, each.wanted(None))

    return wanted


def pods(record: Record, wanted: Wanted) -> dict[tuple[str, str], int]:
    """(namespace, deployment) -> pods wanted, of all deployments that the session scales."""
    return {(each.namespace, each.name): int(wanted(one)) for each in record.objects for one in _replicas(each)}


def write(writer: Writer, record: Record, wanted: Wanted, *, down_first: bool) -> Outcome:
    """Give all fields their wanted values: Flux first, then numbers of pods before other changes, or after them."""
    deployments = [changed for changed in record.objects if changed.kind is DEPLOYMENT]
    steps: list[Callable[[Changed], list[Field]]] = [_replicas, _others] if down_first else [_others, _replicas]
    outcome = Outcome()
    # Flux first: it would undo the rest.
    for changed in record.objects:
        if changed.kind is not DEPLOYMENT:
            outcome.add(_write(writer, changed, changed.fields, wanted))
    for fields_of in steps:
        for changed in deployments:
            outcome.add(_write(writer, changed, fields_of(changed), wanted))
    return outcome


def _write(writer: Writer, changed: Changed, fields: Iterable[Field], wanted: Wanted) -> Outcome:
    """Give one object's fields their wanted values, as long as each has a value that is known."""
    fields = list(fields)
    if not fields:
        return Outcome()
    given_up = time.monotonic() + writer.cluster.patience_s
    while True:
        try:
            return _try_to_write(writer, changed, fields, wanted)
        except NotFoundError:
            return Outcome(left=[f"{changed} was deleted"])
        except ClusterError as error:
            if time.monotonic() > given_up or not (error.is_transient or isinstance(error, ConflictError)):
                raise
        time.sleep(_PAUSE_S)


def _try_to_write(writer: Writer, changed: Changed, fields: list[Field], wanted: Wanted) -> Outcome:
    # With little patience: between two tries it is asked anew whether the cluster is ours.
    cluster = writer.cluster.with_patience(min(_TRY_S, writer.cluster.patience_s))
    # The number of pods through the subresource: it needs no right to change anything else.
    subresource = "scale" if changed.kind is DEPLOYMENT and fields[0].path == REPLICAS else ""
    held = cluster.get(changed.kind, changed.namespace, changed.name, subresource)
    if held is None:
        return Outcome(left=[f"{changed} was deleted"])
    if held["metadata"]["uid"] != changed.uid:
        return Outcome(left=[f"{changed} was recreated by somebody else"])
    if subresource:  # it leaves out a zero
        held.setdefault("spec", {}).setdefault("replicas", 0)
    found, written, left = rewritten(held, fields, wanted)
    if written:
        writer.fence()
        cluster.replace(changed.kind, changed.namespace, found, subresource)
    theirs = [text for each in left for text in each.texts(each.before, get(found, each.path), _THEIRS)]
    return Outcome(len(written), [f"{changed}: {text}" for text in theirs])


def _replicas(changed: Changed) -> list[Field]:
    return [each for each in changed.fields if each.path == REPLICAS]


def _others(changed: Changed) -> list[Field]:
    return [each for each in changed.fields if each.path != REPLICAS]
