"""Keeps a cluster for one invocation: takes it, holds it, puts it back. A process of its own, started by `session`.

Reads its order from the first line of standard input. The end of that input says that the workflow is over, however
it ended; then, as after SIGTERM, the cluster is put back.
"""

import contextlib
import getpass
import json
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone.collect.kubernetes import apply, rights, session
from loadstone.collect.kubernetes.client import Cluster, ClusterError
from loadstone.collect.kubernetes.declared import Declared
from loadstone.collect.kubernetes.lease import Lease, LeaseLostError
from loadstone.collect.kubernetes.record import Record, Records
from loadstone.collect.kubernetes.survey import survey
from loadstone.errors import LoadstoneError
from loadstone.lock import exclusive

Log = Callable[[str], None]
LEASE_NAME = "loadstone"
_POLL_S = 0.3

PUT_BACK, LEFT_SOME, NOT_PUT_BACK, REFUSED = 0, 3, 4, 5


class Keeper:
    """One session on one cluster. `ended` is set when the workflow is over."""

    def __init__(self, declared: Declared, ended: threading.Event, log: Log) -> None:
        self.declared = declared
        self.ended = ended
        self.log = log
        self.cluster = Cluster(declared.context, patience_s=declared.patience_s, log=log)
        self.records = Records(self.cluster, declared.namespace, session.record_path(self.cluster.host))
        self.holder = f"{_user()}@{socket.gethostname()} {uuid.uuid4()}"
        self.left: list[str] = []

    def keep(self, needed: list[str]) -> int:
        """Hold the cluster for measuring the variants `needed` until the end; an exit code."""
        rights.check(self.cluster, self.declared)
        with self._leased() as lease:
            if lease is None:
                return PUT_BACK
            self.put_back()
            if needed and not self.ended.is_set():
                self._hold(lease, needed)
            else:
                session.say(session.DONE)
            return LEFT_SOME if self.left else PUT_BACK

    def _hold(self, lease: Lease, needed: list[str]) -> None:
        found = survey(self.cluster, self.declared, needed)
        for note in found.notes:
            self.log(note)
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        record = Record(str(uuid.uuid4()), self.holder, since, self.cluster.host, found.objects)
        self.records.write(record)
        try:
            apply.idle(self.cluster, record)
            self.log(f"holding {self.cluster.host}: {_counted(record)} will be put back at the end")
            self._until_end(lease)
        finally:
            if lease.lost.is_set():
                session.say(session.LOST, f"the Lease of {self.cluster.host} was taken over by {lease.holder()}")
            else:
                # A job of ours may be at work for a moment longer.
                with exclusive("putting the cluster back", self.log, path=session.JOB_LOCK.resolve()):
                    self.put_back()

    def _until_end(self, lease: Lease) -> None:
        said = ""
        while not self.ended.wait(_POLL_S):
            now = session.READY if lease.is_held() else session.UNSURE
            if lease.lost.is_set():
                return
            if now != said:
                session.say(now)
                said = now

    def put_back(self) -> None:
        """Put back what the record says, if there is one."""
        record = self.records.find()
        if record is None:
            return
        if record.holder != self.holder:
            self.log(f"putting back what {record.holder} left on {self.cluster.host} (since {record.since})")
        outcome = apply.put_back(self.cluster, record)
        self.records.clear([record.id])
        if outcome.left:
            self.log("left as it is, for others have changed it meanwhile:\n  " + "\n  ".join(outcome.left))
            self.left += outcome.left
        self.log(f"{self.cluster.host} is as it was: {_counted(record)}, {len(outcome.written)} fields put back")

    @contextlib.contextmanager
    def _leased(self) -> Iterator[Lease | None]:
        """The cluster's Lease, renewed; None when the workflow ended before it was free."""
        declared = self.declared
        lease = Lease(self.cluster, declared.namespace, LEASE_NAME, self.holder, declared.lease_duration_s)
        if not lease.acquire(self.log, self.ended.is_set):
            yield None
            return
        with lease.renewing():
            try:
                yield lease
            except ClusterError:  # what is left may need putting back: whoever comes next waits until it has expired
                raise
            except BaseException:
                lease.release()
                raise
            with contextlib.suppress(LeaseLostError):
                lease.release()


def restore(config: Mapping[str, Any], log: Log) -> None:
    """Put a cluster back after a session that could not; waits, and says for whom, while another one holds it.

    Raises LoadstoneError when something is left as others have changed it.
    """
    target = config.get("target", {})
    if target.get("kind") != "kubernetes":
        raise LoadstoneError("the configuration declares no Kubernetes target: there is nothing to put back")
    keeper = Keeper(Declared.of(target, config["host"]), threading.Event(), log)
    if keeper.records.find() is None:
        log(f"nothing is to be put back on {keeper.cluster.host}")
    elif keeper.keep([]) != PUT_BACK:
        raise LoadstoneError("not all is as it was: see above")


def _counted(record: Record) -> str:
    kinds: dict[str, int] = {}
    for each in record.objects:
        kinds[each.kind.name] = kinds.get(each.kind.name, 0) + 1
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def main() -> int:
    """Keep a cluster as the order on standard input says."""
    order = json.loads(sys.stdin.readline())
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)

    def wait_for_end_of_input() -> None:
        while sys.stdin.read(1):
            pass
        ended.set()

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    log_file = Path("logs/cluster.log")
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("a", encoding="utf-8", errors="backslashreplace", buffering=1) as file:

        def log(text: str) -> None:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {text}\n")
            with contextlib.suppress(OSError):  # nobody may be listening any more
                print(text, file=sys.stderr, flush=True)

        try:
            return Keeper(Declared.of(order["target"], order["host"]), ended, log).keep(order["needed"])
        except LoadstoneError as error:
            log(f"error: {error}")
            if session.has_records():
                log("the cluster may not be as it was: the next sweep, or `snakemake --cores 1 restore`, puts it back")
            session.say(session.FAILED, "the cluster can't be used: see above")
            return NOT_PUT_BACK if session.has_records() else REFUSED


if __name__ == "__main__":
    sys.exit(main())
