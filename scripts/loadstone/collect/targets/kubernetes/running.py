"""One run in a cluster: the variant is scaled up and all others down, checked until it is ready, and scaled down."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from loadstone.archive.locks import exclusive
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.collect.targets.identity import identify, retried
from loadstone.collect.targets.kubernetes import apply, ready
from loadstone.collect.targets.kubernetes.apply import Writer
from loadstone.collect.targets.kubernetes.changes import Field
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.monitoring import PodMetrics, Watched
from loadstone.collect.targets.kubernetes.objects import DEPLOYMENT, POD
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
        """Raise LoadstoneError when this session has lost the cluster. Dead pods show in the attack's own results."""
        now = time.monotonic()
        if now - self._checked > _CHECK_EVERY_S:
            self._checked = now
            session.check()


@contextmanager
def running(job: Job) -> Iterator[KubernetesTarget]:
    """The job's variant, ready and identified; afterwards no variant is up.

    Needs a session (`session.start`). Raises RunFailedError when the variant is not ready in time.
    """
    session.wait_until_held()
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
            asked = (job.planned.request, job.target["variants"][variant.name]["expect"], job.timeout_s, job.connection)
            identity = retried(lambda: identify(*asked), deadline, session.check)
            before = _as_wanted(cluster, record, variant, {})
            measured = {"server_version": cluster.version(), "pods": _pods(cluster, record, variant)}
            seen = {"identity": identity, "cluster": measured}
            yield KubernetesTarget(cluster, declared, variant, seen)
            # If anybody else had the cluster meanwhile, or changed it and back, the results would mean nothing.
            session.fence(declared.patience_s)
            _as_wanted(cluster, record, variant, before)
        except RunFailedError:
            with suppress(RunFailedError):  # the first failure says more
                _bring_down(writer, record, declared.ready_timeout_s)
            raise
        try:
            _bring_down(writer, record, declared.ready_timeout_s)
        except LoadstoneError as error:  # the attack's results are complete; the next run scales down first
            job.log(f"the variant {variant.name} is not down yet: {error}")


def _own_record(cluster: Cluster, declared: Declared) -> Record:
    """The record of this session. Raises LoadstoneError when the cluster has the record of another one."""
    state = session.fence(declared.patience_s)
    if state.server != cluster.host:
        raise LoadstoneError(f"the kubeconfig now points to {cluster.host}, but the sweep holds {state.server}")
    record = Records(cluster, declared.namespace, session.record_path(cluster.host)).find()
    if record is None or record.id != state.record:
        raise LoadstoneError(f"the record in {cluster.host} is of another sweep; start again")
    return record


def _as_wanted(cluster: Cluster, record: Record, variant: Variant, before: dict[str, Any]) -> dict[str, Any]:
    """The generation of each object. Raises RunFailedError when somebody has changed one, even for a moment.

    `before` are the generations before the attack.
    """
    deviations, generations = apply.deviations(cluster, record, variant.name)
    found = [text for texts in deviations.values() for text in texts]
    found += [
        f"{name} was changed during the attack: in fields that no variant declares, or only for a while"
        for name, was in before.items()
        if generations.get(name, was) != was and not deviations.get(name)
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
    """Wait until the deployments that should have no pods have none."""
    gone = {name: count for name, count in apply.pods(record, wanted).items() if not count}
    ready.wait(writer.cluster, gone, limit_s, session.check)


def _demand(writer: Writer, record: Record, wanted: apply.Wanted, limit_s: float, *, down_first: bool) -> None:
    """Repeat a step until nobody else's change is in its way: that must be neither overwritten nor measured."""
    deadline = time.monotonic() + limit_s
    while left := apply.write(writer, record, wanted, down_first=down_first).left:
        if time.monotonic() >= deadline:
            raise RunFailedError("somebody else changes the cluster during the sweep: " + "; ".join(left))
        time.sleep(_POLL_S)


def _pods(cluster: Cluster, record: Record, variant: Variant) -> list[dict[str, Any]]:
    """Node and images of every pod that is measured."""
    scaled = {(each.namespace, each.name) for each in record.objects if each.kind is DEPLOYMENT}
    found = []
    for namespace in variant.namespaces:
        pods = cluster.list(POD, namespace)
        for deployment in cluster.list(DEPLOYMENT, namespace):
            if (namespace, deployment["metadata"]["name"]) in scaled:
                found += [
                    {
                        "pod": f"{namespace}/{pod['metadata']['name']}",
                        "node": pod["spec"].get("nodeName"),
                        "images": {
                            each["name"]: each.get("imageID") or each.get("image")
                            for each in pod["status"].get("containerStatuses", [])
                        },
                    }
                    for pod in ready.pods_of(deployment, pods)
                ]
    return found
