"""Brings a cluster into a wanted state, and back. Repeatable: what is as wanted is not touched.

Jobs only move between states that the record has, and every step may be repeated from any of them, so a killed job
needs no clean-up of its own.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loadstone.collect.targets.kubernetes.changes import REPLICAS, STOPPED, Field, get, rewritten
from loadstone.collect.targets.kubernetes.client import (
    Cluster,
    ClusterError,
    ConflictError,
    NotFoundError,
    noting_refusals,
)
from loadstone.collect.targets.kubernetes.objects import DEPLOYMENT
from loadstone.collect.targets.kubernetes.record import Changed, Record

Fields = tuple[Field, ...]
Wanted = Callable[[Field], Any]
_TRY_S, _PAUSE_S = 5.0, 0.2
_THEIRS = " is now {now}, set by somebody else; before the sweep it was {was}"


@dataclass(frozen=True)
class Writer:
    """Changes a cluster while this sweep holds it: `fence` is called before each write, and raises otherwise."""

    cluster: Cluster
    fence: Callable[[], object]


@dataclass
class Outcome:
    """How many fields were written; texts for what was left, because others changed it, and for what was refused."""

    written: int = 0
    left: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.written += other.written
        self.left += other.left
        self.refused += other.refused


def put_back(writer: Writer, record: Record) -> Outcome:
    """Restore everything that the record's session changed, except what others changed since, as far as allowed."""
    outcome = Outcome()
    for changed in record.objects:
        for fields in (_others(changed), _replicas(changed)):
            with noting_refusals(outcome.refused, changed):
                outcome.add(_write(writer, changed, fields, lambda each: each.before))
    return outcome


def deviations(cluster: Cluster, record: Record, variant: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """By object: texts for what is not as wanted while a variant is measured; and the generations."""
    found: dict[str, list[str]] = {}
    generations = {}
    for changed in record.objects:
        held = cluster.get(changed.kind, changed.namespace, changed.name)
        if held is None or held["metadata"]["uid"] != changed.uid:
            found[str(changed)] = [f"{changed} was deleted or recreated by somebody else"]
            continue
        for each in changed.fields:
            texts = each.texts(each.wanted(variant), get(held, each.path), " is {now} instead of {was}")
            found.setdefault(str(changed), []).extend(f"{changed}: {text}" for text in texts)
        generations[str(changed)] = held["metadata"].get("generation")
    return found, generations


def idle(each: Field) -> Any:
    """The wanted value while no variant is measured: none is up, nothing is patched, Flux is suspended."""
    return each.wanted(None)


def prepared(variant: str) -> Wanted:
    """Wanted values before a variant's pods start: all others are down, the variant's changes are made."""

    def wanted(each: Field) -> Any:
        if each.path != REPLICAS or variant not in each.ours:
            return each.wanted(variant)
        return each.ours.get(STOPPED, each.wanted(None))

    return wanted


def pods(record: Record, wanted: Wanted) -> dict[tuple[str, str], int]:
    """The wanted number of pods of each deployment, (namespace, name), that the session scales."""
    return {(each.namespace, each.name): int(wanted(one)) for each in record.objects for one in _replicas(each)}


def write(writer: Writer, record: Record, wanted: Wanted, *, down_first: bool) -> Outcome:
    """Give all fields their wanted values: numbers of pods before other changes, or after them.

    Flux is suspended before anything else, because it would undo the rest.
    """
    flux = [(changed, changed.fields) for changed in record.objects if changed.kind is not DEPLOYMENT]
    deployments = [changed for changed in record.objects if changed.kind is DEPLOYMENT]
    replicas = [(changed, _replicas(changed)) for changed in deployments]
    others = [(changed, _others(changed)) for changed in deployments]
    outcome = Outcome()
    for changed, fields in flux + (replicas + others if down_first else others + replicas):
        outcome.add(_write(writer, changed, fields, wanted))
    return outcome


def _write(writer: Writer, changed: Changed, fields: Fields, wanted: Wanted) -> Outcome:
    """Set the fields of an object that nobody else has changed to their wanted values."""
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


def _try_to_write(writer: Writer, changed: Changed, fields: Fields, wanted: Wanted) -> Outcome:
    # With little patience, so that every try begins with the fence.
    cluster = writer.cluster.with_patience(min(_TRY_S, writer.cluster.patience_s))
    # The subresource of replicas needs no right to change anything else.
    subresource = "scale" if changed.kind is DEPLOYMENT and fields[0].path == REPLICAS else ""
    held = cluster.get(changed.kind, changed.namespace, changed.name, subresource)
    if held is None:
        return Outcome(left=[f"{changed} was deleted"])
    if held["metadata"]["uid"] != changed.uid:
        return Outcome(left=[f"{changed} was recreated by somebody else"])
    if subresource:  # omits a zero
        held.setdefault("spec", {}).setdefault("replicas", 0)
    found, written, left = rewritten(held, fields, wanted)
    if written:
        writer.fence()
        cluster.replace(changed.kind, changed.namespace, found, subresource)
    theirs = [text for each in left for text in each.texts(each.before, get(found, each.path), _THEIRS)]
    return Outcome(len(written), [f"{changed}: {text}" for text in theirs])


def _replicas(changed: Changed) -> Fields:
    return tuple(each for each in changed.fields if each.path == REPLICAS)


def _others(changed: Changed) -> Fields:
    return tuple(each for each in changed.fields if each.path != REPLICAS)
