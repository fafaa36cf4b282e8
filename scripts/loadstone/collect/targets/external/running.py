"""One run of an external target: its variant is prepared by the keeper, and must answer as expected."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from loadstone.archive.locks import exclusive
from loadstone.archive.metadata import parse_duration
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Job, ResourceSample, RunFailedError
from loadstone.collect.targets.external.prometheus import PrometheusSampler
from loadstone.collect.targets.identity import identify, retried
from loadstone.config import connection, target
from loadstone.errors import LoadstoneError

_READY_S = 300.0


class ExternalTarget:
    """A variant that runs somewhere else. What happens to it shows in the attack's own results."""

    def __init__(self, resources: Mapping[str, Any], seen: dict[str, Any]) -> None:
        self.seen = seen
        self.sample = _sampling(resources)

    def check_alive(self) -> None:
        """Nothing here can tell."""

    def watch(self) -> None:
        """Nothing to watch."""

    def incidents(self) -> list[dict[str, Any]]:
        return []


def _sampling(resources: Mapping[str, Any]) -> Callable[[], list[ResourceSample]]:
    """CPU and memory from where they are declared: Prometheus, namespaces of a cluster, or nowhere."""
    if "prometheus" in resources:
        return PrometheusSampler(resources["prometheus"]).sample
    if "namespaces" in resources:  # the client library takes a second to load
        from loadstone.collect.targets.kubernetes.monitoring import PodMetrics  # noqa: PLC0415

        return PodMetrics(resources.get("context"), resources["namespaces"]).sample
    return list


@contextlib.contextmanager
def running(job: Job) -> Iterator[ExternalTarget]:
    """The job's variant, prepared and identified. Raises RunFailedError when that fails."""
    declared = job.target["variants"][job.cell.variant_dir]
    if faults := [*connection.strangers(f"target.variants.{job.cell.variant_dir}", declared, _allowed(job))]:
        raise LoadstoneError("\n".join(faults))
    with contextlib.ExitStack() as stack:
        if has_commands := target.has_commands(job.target):
            lock, does = session.JOB_LOCK.resolve(), "still measures"
            stack.enter_context(exclusive(f"run {job.run} of {job.cell}", job.log, path=lock, does=does))
            if refusal := session.switch(job.cell.variant_dir):
                raise RunFailedError(refusal)
        limit_s = parse_duration(job.target.get("ready_timeout")) or _READY_S
        deadline = time.monotonic() + (limit_s if has_commands else 0.0)
        is_allowed = partial(connection.is_allowed, allowed=_allowed(job))
        asked = (job.planned.request, declared["expect"], job.timeout_s, job.connection)
        identity = retried(lambda: identify(*asked, allowed=is_allowed), deadline)
        yield ExternalTarget(job.target.get("resources", {}), {"identity": identity})
        if has_commands:
            session.check()  # the variant was not cleaned up meanwhile


def _allowed(job: Job) -> Sequence[str]:
    hosts: Sequence[str] = job.target.get("allow", ())
    return hosts
