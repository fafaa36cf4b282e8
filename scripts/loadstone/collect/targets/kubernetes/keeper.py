"""Keeps a cluster for one command: acquires it, holds it, restores it. A process of its own, started by `session`.

Reads its order from the first line of standard input. The end of that input means that the workflow is over, however
it ended; then, as after SIGTERM, the cluster is restored.
"""

import contextlib
import json
import socket
import sys
import threading
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone.archive.locks import exclusive, user
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Log
from loadstone.collect.targets.kubernetes import apply, generator_pods, rights
from loadstone.collect.targets.kubernetes.apply import Writer
from loadstone.collect.targets.kubernetes.client import Cluster, ClusterError, noting_refusals
from loadstone.collect.targets.kubernetes.lease import NAME, Lease, LeaseLostError, claim, remove_claims
from loadstone.collect.targets.kubernetes.record import Record, Records
from loadstone.collect.targets.kubernetes.settings import Declared, declared_target
from loadstone.collect.targets.kubernetes.survey import survey
from loadstone.collect.targets.session import LEFT_SOME, NOT_PUT_BACK, PUT_BACK, REFUSED, TAKEN_OVER, State
from loadstone.errors import LoadstoneError

_POLL_S = 0.3
_FIRST_S = 15.0  # until the API server has answered once
_JOB_TIMEOUT_S = 30.0  # for a job to notice that the session is over


class Keeper:
    """One session on one cluster. `ended` is set when the workflow is over; `say` is called with each new state."""

    def __init__(
        self, declared: Declared, ended: threading.Event, log: Log, say: Callable[[State], None], own_id: str = ""
    ) -> None:
        self.declared = declared
        self.ended = ended
        self.log = log
        self.say = say
        self.id = own_id or str(uuid.uuid4())
        self.cluster = Cluster(declared.context, patience_s=declared.patience_s, log=log)
        self.records = Records(self.cluster, declared.namespace, session.record_path(self.cluster.host))
        self.holder = f"{user()}@{socket.gethostname()} {self.id}"
        self.code = PUT_BACK

    def check_reachable(self) -> None:
        """Raise ClusterError when the API server does not answer soon: its address may be wrong."""
        self.cluster.with_patience(min(_FIRST_S, self.declared.patience_s)).version()

    def keep(self, needed: list[str], campaigns: Iterable[str] = ()) -> int:
        """Hold the cluster for measuring the variants `needed` until `ended`, or `campaigns` are over; an exit code."""
        self._say(session.WAITING)
        for text in session.other_records(self.cluster.host):
            self.log(text)
        self.check_reachable()
        if needed:
            rights.check(self.cluster, self.declared)
        with self._leased() as lease:
            if lease is None:
                return PUT_BACK
            writer = Writer(self.cluster, lambda: _renewed(lease))
            while (left := self.records.find()) is not None:
                self.log(f"restoring {self.cluster.host} after the sweep of {left.holder} (since {left.since})")
                self._put_back(writer, left)
            if needed and not self.ended.is_set():
                self._hold(lease, writer, needed, list(campaigns))
            else:
                self._say(session.DONE)
            return self.code

    def _hold(self, lease: Lease, writer: Writer, needed: list[str], campaigns: list[str]) -> None:
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        namespaces = tuple(self.declared.scaled_namespaces)
        own = str(uuid.uuid4())
        where = self.declared.generators.namespace if self.declared.generators else ""
        record = Record(
            own, self.holder, since, self.cluster.host, claims=namespaces, namespace=self.declared.namespace, load=where
        )
        self.records.write(record)
        try:
            claim(writer, record, self.declared.namespace)
            found = survey(self.cluster, self.declared, needed)
            for note in found.notes:
                self.log(note)
            surveyed = replace(record, objects=found.objects)
            self.records.write(surveyed)
            record = surveyed
            apply.write(writer, record, apply.idle, down_first=True)
            self.log(f"acquired {self.cluster.host}: {_object_counts(record)} will be restored at the end")
            self._hold_until_end(lease, record, campaigns)
        finally:
            self._finish(lease, writer, record)

    def _say(self, name: str, text: str = "", **held: Any) -> None:
        self.say(State(self.id, name, text, self.cluster.host, **held))

    def _hold_until_end(self, lease: Lease, record: Record, campaigns: list[str]) -> None:
        said_until = 0.0
        while not (self.ended.wait(_POLL_S) or lease.lost.is_set() or session.is_released(self.id, campaigns)):
            if (held_until := lease.held_until()) != said_until:
                self._say(session.HELD, record=record.id, held_until=held_until)
                said_until = held_until

    def _finish(self, lease: Lease, writer: Writer, record: Record) -> None:
        """Restore the cluster, unless another sweep has taken it over, which restores it first."""
        if lease.lost.is_set():
            self._say(session.LOST, f"{self.cluster.host} was taken over by {lease.holder()}")
            self.code = TAKEN_OVER
            return
        if record.objects:
            self._say(session.LOST, "the sweep is over")
        with contextlib.ExitStack() as stack:
            try:
                # A job of this session may still be at work for a moment.
                path, does = session.JOB_LOCK.resolve(), "is still at work in the cluster"
                stack.enter_context(exclusive("restoring the cluster", self.log, path, _JOB_TIMEOUT_S, does=does))
            except (OSError, LoadstoneError) as error:
                self.log(f"restoring the cluster although {error}")
            self._put_back(writer, record)

    def _put_back(self, writer: Writer, record: Record) -> None:
        """Raises LoadstoneError and keeps the record when the cluster refuses any of it."""
        refused: list[str] = []
        if record.load:
            with noting_refusals(refused, f"load generators in the namespace {record.load}"):
                generator_pods.remove(writer.cluster, record.load, record.id, writer.fence)
        outcome = apply.put_back(writer, record)
        refused += outcome.refused
        refused += remove_claims(writer, record, self.declared.namespace)
        if refused:
            raise LoadstoneError(
                f"not everything could be restored on {self.cluster.host}; what was refused is still recorded:\n  "
                + "\n  ".join(refused)
            )
        self.records.clear(record)
        if outcome.left:
            self.log("not restored, because somebody else has changed it meanwhile:\n  " + "\n  ".join(outcome.left))
            self.code = LEFT_SOME
        if not record.objects:
            return
        how = "as it was, except for what others have changed" if outcome.left else "as it was"
        self.log(f"{self.cluster.host} is {how}: {_object_counts(record)}, {outcome.written} fields restored")

    @contextlib.contextmanager
    def _leased(self) -> Iterator[Lease | None]:
        """The cluster's Lease, renewed; None when the workflow ended before it was free."""
        declared = self.declared
        lease = Lease(self.cluster, declared.namespace, NAME, self.holder, declared.lease_duration_s)
        if not lease.acquire(self.log, self.ended.is_set):
            yield None
            return
        with lease.renewing():
            try:
                yield lease
            except ClusterError:  # something may have to be restored: the next sweep waits until the Lease expires
                raise
            except BaseException:
                lease.release()
                raise
            with contextlib.suppress(LeaseLostError):
                lease.release()


def _renewed(lease: Lease) -> None:
    """Raises LeaseLostError, or ClusterError, unless the Lease is certainly held."""
    if not lease.is_held():
        lease.renew()


def restore(config: Mapping[str, Any], log: Log) -> None:
    """Restore a cluster after a session that could not; waits while another one holds it, and logs which.

    Raises LoadstoneError when something is left as others have changed it, or is refused.
    """
    declared = Declared.of(declared_target(config), config["host"], only_cluster=True)
    keeper = Keeper(declared, threading.Event(), log, lambda _: None)
    keeper.check_reachable()
    if keeper.records.find() is None:
        for text in session.other_records(keeper.cluster.host):
            log(text)
        log(f"there is nothing to restore on {keeper.cluster.host}")
    elif keeper.keep([]) != PUT_BACK:
        raise LoadstoneError("not everything could be restored: see above")


def _object_counts(record: Record) -> str:
    kinds = Counter(each.kind.name for each in record.objects)
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())


def main() -> int:
    """Keep a cluster as ordered on standard input."""
    order = json.loads(sys.stdin.readline())
    ended, log = session.ended_with_input(), session.log_to(Path("logs/cluster.log"))

    def say(state: State) -> None:
        try:
            session.write_state(state)
        except OSError as error:  # jobs stop without a state; restoring must continue
            log(f"the state of the session can't be written: {error}")

    server = ""
    try:
        declared = Declared.of(order["target"], order["host"], only_cluster=not order["needed"])
        keeper = Keeper(declared, ended, log, say, order["id"])
        server = keeper.cluster.host
        return keeper.keep(order["needed"], order["campaigns"])
    except LoadstoneError as error:
        log(f"error: {error}")
    except Exception:  # noqa: BLE001 - into the log, whatever it is
        log(traceback.format_exc())
    say(State(order["id"], session.FAILED, "the cluster can't be used: see above", server))
    if not session.has_records(server):
        return REFUSED
    log("the cluster may not be as it was: the next sweep, or `snakemake --cores 1 restore`, restores it")
    return NOT_PUT_BACK


if __name__ == "__main__":
    sys.exit(main())
