"""Bringing a cluster into a wanted state, and back. Repeatable: what is as wanted is not touched."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from loadstone.collect.kubernetes.changes import REPLICAS, STOPPED, Field, get, rewritten, value_text
from loadstone.collect.kubernetes.client import DEPLOYMENT, Cluster, ConflictError, NotFoundError
from loadstone.collect.kubernetes.record import Changed, Record

Wanted = Callable[[Field], Any]


@dataclass
class Outcome:
    """Texts for people: what was written, and what was left because others had changed it."""

    written: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.written += other.written
        self.left += other.left


def put_back(cluster: Cluster, record: Record) -> Outcome:
    """Everything as it was before the record's session, except what others changed meanwhile."""
    outcome = Outcome()
    for changed in record.objects:
        outcome.add(_write(cluster, changed, _others(changed), lambda each: each.before))
        outcome.add(_write(cluster, changed, _replicas(changed), lambda each: each.before))
    return outcome


def idle(cluster: Cluster, record: Record) -> Outcome:
    """No variant up, nothing patched, Flux suspended."""
    return _all(cluster, record, lambda each: each.wanted(None), down_first=True)


def prepare(cluster: Cluster, record: Record, variant: str) -> Outcome:
    """All that is not the variant's down, the variant's changes in force; its own pods are not wanted yet."""
    return _all(cluster, record, lambda each: _prepared(each, variant), down_first=True)


def raise_up(cluster: Cluster, record: Record, variant: str) -> Outcome:
    """The variant's pods, and those of its dependencies."""
    return _all(cluster, record, lambda each: each.wanted(variant), down_first=False)


def pods(record: Record, variant: str | None, *, prepared: bool = False) -> dict[tuple[str, str], int]:
    """(namespace, deployment) -> pods wanted, of all deployments that the session scales.

    While a variant is measured (None: while none is), or `prepared` for it.
    """
    found = {}
    for changed in record.objects:
        for each in _replicas(changed):
            value = _prepared(each, variant) if prepared and variant else each.wanted(variant)
            found[changed.namespace, changed.name] = int(value)
    return found


def _prepared(each: Field, variant: str) -> Any:
    if each.path != REPLICAS or variant not in each.ours:
        return each.wanted(variant)
    return each.ours.get(STOPPED, each.wanted(None))


def _all(cluster: Cluster, record: Record, wanted: Wanted, *, down_first: bool) -> Outcome:
    deployments = [changed for changed in record.objects if changed.kind is DEPLOYMENT]
    steps: list[Callable[[Changed], list[Field]]] = [_replicas, _others] if down_first else [_others, _replicas]
    outcome = Outcome()
    # Flux first: it would undo the rest.
    for changed in record.objects:
        if changed.kind is not DEPLOYMENT:
            outcome.add(_write(cluster, changed, changed.fields, wanted))
    for fields_of in steps:
        for changed in deployments:
            outcome.add(_write(cluster, changed, fields_of(changed), wanted))
    return outcome


def _write(cluster: Cluster, changed: Changed, fields: Iterable[Field], wanted: Wanted) -> Outcome:
    """Give one object's fields their wanted values, as long as each has a value that is known."""
    fields = list(fields)
    if not fields:
        return Outcome()
    # The number of pods through the subresource: it needs no right to change anything else.
    subresource = "scale" if changed.kind is DEPLOYMENT and fields[0].path == REPLICAS else ""
    while True:
        held = cluster.get(changed.kind, changed.namespace, changed.name, subresource)
        if held is None:
            return Outcome(left=[f"{changed} is gone"])
        if held["metadata"]["uid"] != changed.uid:
            return Outcome(left=[f"{changed} was made anew by somebody"])
        if subresource:  # it leaves out a zero
            held.setdefault("spec", {}).setdefault("replicas", 0)
        found, written, left = rewritten(held, fields, wanted)
        outcome = Outcome(
            [f"{changed}: {each} {value_text(wanted(each))}" for each in written],
            [f"{changed}: {each} is now {value_text(get(held, each.path))}, by somebody else" for each in left],
        )
        if not written:
            return outcome
        try:
            cluster.replace(changed.kind, changed.namespace, found, subresource)
        except ConflictError:
            continue
        except NotFoundError:
            return Outcome(left=[f"{changed} is gone"])
        return outcome


def _replicas(changed: Changed) -> list[Field]:
    return [each for each in changed.fields if each.path == REPLICAS]


def _others(changed: Changed) -> list[Field]:
    return [each for each in changed.fields if each.path != REPLICAS]
