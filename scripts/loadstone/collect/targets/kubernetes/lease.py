"""Lets one sweep at a time use a cluster, from any user and machine: the holder of a Lease (coordination.k8s.io).

As in client-go's leader election, this machine's clock decides whether a Lease has expired, counted from when the Lease
was last *seen* to change; clocks of two machines are never compared. It is taken over by a write that fails when
somebody else was faster. Unlike in client-go, time without the API server does not count against the holder.

Sweeps whose Leases are in the same namespace wait for each other. Sweeps with different `target.namespace` would not.
So each sweep leaves a claim, a Lease object that is never renewed, in every namespace where it scales deployments.
The claim is part of the record and is removed when the cluster is restored, so an existing claim belongs to a sweep
that is running or was killed. A claim is recorded before it is created, and nobody waits for its removal: only the
Lease in that sweep's own namespace shows whether the sweep is alive, and others may have no right to read it.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.archive.locks import Waiting
from loadstone.collect.targets.base import Log, ignore
from loadstone.collect.targets.kubernetes.apply import Writer
from loadstone.collect.targets.kubernetes.client import (
    Cluster,
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    noting_refusals,
)
from loadstone.collect.targets.kubernetes.objects import LEASE, NAMESPACE, Object
from loadstone.collect.targets.kubernetes.record import Record
from loadstone.collect.targets.session import clock
from loadstone.errors import LoadstoneError, printable

NAME = "loadstone"  # of the Lease that lets one sweep run at a time
CLAIM = "loadstone-claim"
_OF = "loadstone/lease-namespace"
_FOLDER = "loadstone/folder"
_POLL_S = 0.5
_SHORTEST_S, _LONGEST_S = 1.0, 5.0  # bounds on the timeout of one call


class LeaseLostError(LoadstoneError):
    """Somebody else holds the Lease now."""


class Lease:
    """One Lease, as seen by one `holder`, whose name must be unique, such as ``<user>@<host> <uuid>``.

    `lost` is set for good when somebody else has taken it over.
    """

    def __init__(self, cluster: Cluster, namespace: str, name: str, holder: str, duration_s: float) -> None:
        self.namespace, self.name = namespace, name
        self.duration_s = duration_s
        self.lost = threading.Event()
        self._identity = holder
        self._cluster = cluster
        # Calls end well before the Lease expires, and `acquire` can be stopped soon.
        self._quick = cluster.with_patience(min(max(duration_s / 3, _SHORTEST_S), _LONGEST_S))
        self._known: Object | None = None  # as it was last read or written
        self._renewed_at = -math.inf
        self._log: Log = ignore
        self._lock = threading.Lock()  # renewals and the release

    # --- acquire ------------------------------------------------------------------------------------------------------

    def acquire(self, log: Log, stop: Callable[[], bool]) -> bool:
        """Wait for the Lease, logging who holds it. False when `stop()` became true first.

        Raises ClusterError when the API server refuses, or does not answer for longer than the cluster's patience, and
        LoadstoneError when the namespace does not exist and can't be created.
        """
        self._log = log
        watched = _Watched(self.duration_s)
        away_since: float | None = None
        waiting = Waiting(log)
        while not stop():
            try:
                found = self._read()
                if found is None or watched.is_free(found, self._identity):
                    self._take(found)
                    return True
            except ConflictError:
                continue  # somebody was faster
            except ClusterError as error:
                away_since = away_since or time.monotonic()
                if not error.is_transient or time.monotonic() - away_since > self._cluster.patience_s:
                    raise
                watched.forget()
            else:
                away_since = None
                who = found.get("spec", {}).get("holderIdentity")
                waiting.say(who, f"waiting: {_describe(found)} holds the cluster {self._cluster.host}")
            time.sleep(_POLL_S)
        return False

    def _read(self) -> Object | None:
        self._known = self._quick.get(LEASE, self.namespace, self.name)
        return self._known

    def _take(self, found: Object | None) -> None:
        """Take the Lease that was read as `found`. Raises ConflictError when it has changed since."""
        now, was = _now(), (found or {}).get("spec", {})
        if was.get("holderIdentity") not in (None, "", self._identity):
            self._log(f"taking over: {_describe(found)} has not renewed its Lease for too long")
        spec = {"acquireTime": now, "leaseTransitions": was.get("leaseTransitions", 0) + 1}
        self._write(found, spec)

    def _write(self, found: Object | None, spec: Object) -> None:
        """Write this holder. Time counts from before the call, so it ends before others see the Lease expire."""
        begun = clock()
        held = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(math.ceil(self.duration_s), 1),
            "renewTime": _now(),
        }
        annotations = {_FOLDER: str(Path.cwd())}
        if found is None:
            metadata = {"name": self.name, "annotations": annotations}
            self._known = self._create({"metadata": metadata, "spec": spec | held})
        else:
            metadata = found["metadata"]
            metadata = metadata | {"annotations": {**(metadata.get("annotations") or {}), **annotations}}
            body = found | {"metadata": metadata, "spec": {**found.get("spec", {}), **spec, **held}}
            self._known = self._quick.replace(LEASE, self.namespace, body)
        self._renewed_at = begun

    def _create(self, body: Object) -> Object:
        try:
            return self._quick.create(LEASE, self.namespace, body)
        except NotFoundError:
            pass
        try:
            self._quick.create(NAMESPACE, "", {"metadata": {"name": self.namespace}})
        except ConflictError:
            pass  # somebody else has just created it
        except ForbiddenError:
            raise LoadstoneError(
                f"the namespace {self.namespace!r}, in which sweeps exclude each other, does not exist on "
                f"{self._cluster.host}, and you may not create it: kubectl create namespace {self.namespace}"
            ) from None
        return self._quick.create(LEASE, self.namespace, body)

    # --- hold ---------------------------------------------------------------------------------------------------------

    def is_held(self) -> bool:
        """Whether this holder certainly has the Lease now, without asking the API server."""
        return clock() < self.held_until()

    def held_until(self) -> float:
        """Until when this holder certainly has it, by `session.clock`; minus infinity when it has not."""
        return -math.inf if self.lost.is_set() else self._renewed_at + self.duration_s

    def renew(self) -> None:
        """Extend it. Raises LeaseLostError when somebody else has taken it, ClusterError when that can't be known.

        An expired Lease that nobody has taken is still this holder's.
        """
        with self._lock:
            if self.lost.is_set() or self._renewed_at == -math.inf:
                raise LeaseLostError(f"the Lease of {self._cluster.host} is no longer held")
            try:
                self._write(self._known, {})
            except (ConflictError, NotFoundError):
                found = self._read()
                if not self._is_own(found):
                    self.lost.set()
                    who = _describe(found)
                    raise LeaseLostError(f"the cluster {self._cluster.host} was taken over: {who} holds it") from None
                self._write(found, {})

    def _is_own(self, found: Object | None) -> bool:
        """Whether this holder has it. True for a deleted Lease: creating it fails when somebody else was faster."""
        return found is None or found.get("spec", {}).get("holderIdentity") == self._identity

    @contextlib.contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew it three times per duration inside `with`; `lost` is set when somebody else has taken it."""
        ended = threading.Event()
        thread = threading.Thread(target=self._keep_renewing, args=[ended], daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _keep_renewing(self, ended: threading.Event) -> None:
        usual_s = self.duration_s / 3
        failing = False
        while not ended.wait(min(usual_s, _SHORTEST_S) if failing else usual_s):
            try:
                self.renew()
            except LeaseLostError as error:
                if self.lost.is_set():
                    self._log(str(error))
                return
            except ClusterError as error:
                if not failing:
                    self._log(f"the Lease could not be renewed, trying again: {error}")
                failing = True
            else:
                if failing:
                    self._log("the Lease is renewed again")
                failing = False

    def release(self) -> None:
        """Release the Lease, so that the next sweep can take it at once. Does nothing when somebody else holds it."""
        with self._lock:
            was_held, self._renewed_at = self._renewed_at != -math.inf, -math.inf
            while was_held and not self.lost.is_set():
                found = self._cluster.get(LEASE, self.namespace, self.name)
                if found is None or not self._is_own(found):
                    return
                spec = found["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
                with contextlib.suppress(ConflictError, NotFoundError):
                    self._cluster.replace(LEASE, self.namespace, found | {"spec": spec})
                    return

    def holder(self) -> str:
        """Its holder, for messages; the last known one when the API server does not answer."""
        found = self._known
        with contextlib.suppress(ClusterError):
            found = self._quick.get(LEASE, self.namespace, self.name)
        return _describe(found)


class _Watched:
    """Measures how long somebody else's Lease has been unchanged."""

    def __init__(self, usual_s: float) -> None:
        self._usual_s = usual_s
        self.forget()

    def forget(self) -> None:
        """Start again, after a time in which nobody could renew it."""
        self._version: Any = None
        self._since = 0.0

    def is_free(self, found: Object, identity: str) -> bool:
        """Whether the Lease just read can be taken: no holder, this one, or unchanged for its holder's duration."""
        spec = found.get("spec", {})
        if spec.get("holderIdentity") in (None, "", identity):
            return True
        if found["metadata"]["resourceVersion"] != self._version:
            self._version, self._since = found["metadata"]["resourceVersion"], time.monotonic()
        duration_s = spec.get("leaseDurationSeconds") or self._usual_s
        return time.monotonic() - self._since > duration_s


def _now() -> str:
    """The time as text, which is never compared."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _describe(found: Object | None) -> str:
    spec = (found or {}).get("spec", {})
    if not (who := spec.get("holderIdentity")):
        return "nobody"
    folder = ((found or {})["metadata"].get("annotations") or {}).get(_FOLDER)
    since = str(spec.get("acquireTime") or "?").partition(".")[0].replace("T", " ")
    where = f"in {folder}, " if folder else ""
    text = f"{who} ({where}since {since} UTC)"
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:500]


# --- claims of namespaces --------------------------------------------------------------------------------------------


def claim(writer: Writer, record: Record, lease_namespace: str) -> None:
    """Claim the namespaces of a record. Raises LoadstoneError when a sweep with another Lease has claimed one."""
    annotations = {_OF: lease_namespace, "loadstone/since": record.since}
    for namespace in record.claims:
        body = {"metadata": {"name": CLAIM, "annotations": annotations}, "spec": {"holderIdentity": record.holder}}
        writer.fence()
        try:
            writer.cluster.create(LEASE, namespace, body)
        except ConflictError:
            if text := foreign_claim(writer.cluster, namespace, lease_namespace):
                raise LoadstoneError(text) from None


def foreign_claim(cluster: Cluster, namespace: str, lease_namespace: str) -> str:
    """A text that says who has claimed a namespace under another Lease, and what to do; empty when nobody has."""
    held = cluster.get(LEASE, namespace, CLAIM)
    if held is None or _lease_namespace(held) == lease_namespace:
        return ""
    metadata, other = held["metadata"], _lease_namespace(held)
    who = (held.get("spec") or {}).get("holderIdentity") or "somebody"
    return printable(
        f"deployments of the namespace {namespace} are scaled by the sweep of {who} (since "
        f"{(metadata.get('annotations') or {}).get('loadstone/since', '?')}), whose Lease is in the namespace {other} "
        f"instead of {lease_namespace}: give both the same target.namespace, so that they wait for each other. If that "
        f"sweep was killed, restore what it changed: `snakemake --cores 1 restore` with `namespace: {other}`"
    )


def remove_claims(writer: Writer, record: Record, lease_namespace: str) -> list[str]:
    """Remove the claims of a record; returns what the cluster refused."""
    refused: list[str] = []
    for namespace in record.claims:
        with noting_refusals(refused, f"Lease {namespace}/{CLAIM}"):
            held = writer.cluster.get(LEASE, namespace, CLAIM)
            if held is not None and _lease_namespace(held) == lease_namespace:
                writer.fence()
                writer.cluster.delete(LEASE, namespace, CLAIM, held["metadata"]["uid"])
    return refused


def _lease_namespace(held: Object) -> str:
    return str((held["metadata"].get("annotations") or {}).get(_OF, "?"))
