"""One run on a cluster: the variant up and everything else down, ready, identified; down again at the end."""

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loadstone.archive.locks import exclusive
from loadstone.collect.targets.base import Job, RunFailedError, identify
from loadstone.collect.targets.kubernetes import apply, ready, session
from loadstone.collect.targets.kubernetes.apply import Writer
from loadstone.collect.targets.kubernetes.changes import Field
from loadstone.collect.targets.kubernetes.client import DEPLOYMENT, POD, Cluster
from loadstone.collect.targets.kubernetes.monitoring import PodMetrics, Watched
from loadstone.collect.targets.kubernetes.record import Record, Records
from loadstone.collect.targets.kubernetes.settings import Declared, Variant
from loadstone.errors import LoadstoneError

_CHECK_EVERY_S = 1.0
_POLL_S = 0.5


class KubernetesTarget:
    """A variant that is up in its cluster."""

    def __init__(self, cluster: Cluster, declared: Declared, variant: Variant, seen: dict[str, Any]) -> None:
        namespaces = [*variant.namespaces, *declared.sampled]
        watched = Watched(cluster, namespaces)
        self.watch, self.incidents = watched.begin, watched.incidents
        self.sample = PodMetrics(declared.context, namespaces).sample
        self._checked = 0.0
        self.seen = seen

    def check_alive(self) -> None:
        """Raise LoadstoneError when the cluster is not ours any more; whether pods live, the attack itself shows."""
        now = time.monotonic()
        if now - self._checked > _CHECK_EVERY_S:
            self._checked = now
            session.check()


@contextmanager
def running(job: Job) -> Iterator[KubernetesTarget]:
    """The job's variant, up and answering as itself; afterwards no variant is up.

    Needs a session (`session.start`). Raises RunFailedError when the variant can't be brought up in time.
    """
    session.join()
    declared = Declared.of(job.target, job.cell.campaign.host)
    variant = declared.variants[job.cell.variant_dir]
    cluster = Cluster(declared.context, patience_s=declared.patience_s, log=job.log)
    writer = Writer(cluster, lambda: session.fence(declared.patience_s))
    lock = session.JOB_LOCK.resolve()
    with exclusive(f"run {job.run} of {job.cell}", job.log, path=lock, does="is still at work in the cluster"):
        record = _own_record(cluster, declared)
        try:
            deadline = time.monotonic() + declared.ready_timeout_s
            _bring_up(writer, record, variant, declared.ready_timeout_s)
            identity = _identified(job, deadline)
            before = _as_wanted(cluster, record, variant, {})
            seen = {"identity": identity, "cluster": _seen(cluster, record, variant)}
            yield KubernetesTarget(cluster, declared, variant, seen)
            # Had anybody else had the cluster meanwhile, or changed it and back, the results would be of nothing.
            session.fence(declared.patience_s)
            _as_wanted(cluster, record, variant, before)
        except RunFailedError:
            with contextlib.suppress(RunFailedError):  # what failed first says more
                _bring_down(writer, record, declared.ready_timeout_s)
            raise
        try:
            _bring_down(writer, record, declared.ready_timeout_s)
        except LoadstoneError as error:  # the attack is over and stands by its own data; the next run sees to the rest
            job.log(f"the variant {variant.name} is not down yet: {error}")


def _own_record(cluster: Cluster, declared: Declared) -> Record:
    """What this session's keeper has recorded. Raises LoadstoneError when the cluster holds another's record."""
    state = session.fence(declared.patience_s)
    if state.server != cluster.host:
        raise LoadstoneError(f"the kubeconfig now means {cluster.host}, but the sweep holds {state.server}")
    record = Records(cluster, declared.namespace, session.record_path(cluster.host)).find()
    if record is None or record.id != state.record:
        raise LoadstoneError(f"what {cluster.host} has recorded is not of this sweep; start again")
    return record


def _as_wanted(cluster: Cluster, record: Record, variant: Variant, before: dict[str, Any]) -> dict[str, Any]:
    """Generations of what is measured. Raises RunFailedError when somebody has changed it, if only for a while."""
    found, generations = apply.deviations(cluster, record, variant.name)
    strange = [name for name, was in before.items() if generations.get(name, was) != was]
    found += [
        f"{name} was changed during the attack: in fields that no variant declares, or only for a while"
        for name in strange
        if not any(text.startswith(f"{name}: ") for text in found)
    ]
    if found:
        raise RunFailedError("somebody else changed the cluster during the run: " + "; ".join(found))
    return generations


def _bring_up(writer: Writer, record: Record, variant: Variant, limit_s: float) -> None:
    def measured(each: Field) -> Any:
        return each.wanted(variant.name)

    prepared = apply.prepared(variant.name)
    _demand(writer, record, prepared, limit_s, down_first=True)
    _wait_gone(writer, record, prepared, limit_s)
    _demand(writer, record, measured, limit_s, down_first=False)
    ready.wait(writer.cluster, apply.pods(record, measured), limit_s, session.check)


def _bring_down(writer: Writer, record: Record, limit_s: float) -> None:
    _demand(writer, record, apply.idle, 0, down_first=True)
    _wait_gone(writer, record, apply.idle, limit_s)


def _wait_gone(writer: Writer, record: Record, wanted: apply.Wanted, limit_s: float) -> None:
    """Until deployments that are to have no pods have none."""
    gone = {name: count for name, count in apply.pods(record, wanted).items() if not count}
    ready.wait(writer.cluster, gone, limit_s, session.check)


def _demand(writer: Writer, record: Record, wanted: apply.Wanted, limit_s: float, *, down_first: bool) -> None:
    """Repeat a step until nobody else's change is in its way: such is not ours to overwrite, nor to measure."""
    deadline = time.monotonic() + limit_s
    while left := apply.write(writer, record, wanted, down_first=down_first).left:
        if time.monotonic() >= deadline:
            raise RunFailedError("somebody else changes the cluster during the sweep: " + "; ".join(left))
        time.sleep(_POLL_S)


def _identified(job: Job, deadline: float) -> dict[str, Any]:
    """The variant's own answer, several times in a row; a mesh needs a moment to learn of new pods."""
    expect = job.target["variants"][job.cell.variant_dir]["expect"]
    while True:
        try:
            return identify(job.planned.request, expect, job.timeout_s)
        except RunFailedError:
            if time.monotonic() > deadline:
                raise
        session.check()
        time.sleep(_POLL_S)


def _seen(cluster: Cluster, record: Record, variant: Variant) -> dict[str, Any]:
    """What is measured: the server's version, and image and node of every pod."""
    pods = []
    for namespace in variant.namespaces:
        listed = cluster.list(POD, namespace)
        names = {
            changed.name for changed in record.objects if changed.kind is DEPLOYMENT and changed.namespace == namespace
        }
        for deployment in cluster.list(DEPLOYMENT, namespace):
            if deployment["metadata"]["name"] in names:
                pods += [_pod(namespace, pod) for pod in ready.selected(deployment, listed)]
    return {"server_version": cluster.version(), "pods": pods}


def _pod(namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    images = {
        each["name"]: each.get("imageID") or each.get("image") for each in pod["status"].get("containerStatuses", [])
    }
    return {
        "pod": f"{namespace}/{pod['metadata']['name']}",
        "node": pod["spec"].get("nodeName"),
        "images": images,
    }
