"""Snakemake's executor for Kubernetes, for jobs that see the workflow's folder on a volume, under its own name.

Snakemake's own takes it that they don't: it would upload the sources and every input of every job, and give it an empty
folder to work in. Here jobs read and write archive, tables and pages in place.
"""

import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import kubernetes.client
from snakemake_executor_plugin_kubernetes import Executor as Kubernetes
from snakemake_executor_plugin_kubernetes import ExecutorSettings
from snakemake_executor_plugin_kubernetes import common_settings as theirs

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

common_settings = replace(
    theirs, implies_no_shared_fs=False, job_deploy_sources=False, auto_deploy_default_storage_provider=False
)


class JobSpec(kubernetes.client.V1JobSpec):
    """Snakemake's executor sets a field that there is not. Clients since 36 refuse that, older ones ignored it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "containers":
            super().__setattr__(name, value)


kubernetes.client.V1JobSpec = JobSpec


@contextmanager
def interrupted_later() -> Iterator[None]:
    """A signal that ends this process waits for the end of what is done meanwhile, a second one does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, _: FrameType | None) -> None:
        if came:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
        came.append(number)

    for number in before:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class Executor(Kubernetes):
    """Differs by where a job works, and in that an interrupted command leaves none behind.

    While Snakemake asks how jobs are, its own list of them is empty: interrupted then, it would cancel nothing.
    """

    def run_job(self, job: object) -> None:
        """Submit it: whoever interrupts this in the middle would leave a job that nobody knows."""
        with interrupted_later():
            super().run_job(job)

    def report_job_submission(self, job_info: object) -> None:
        """A job is in the cluster."""
        self._unfinished.append(job_info)
        super().report_job_submission(job_info)

    def report_job_success(self, job_info: object) -> None:
        """It has ended well, and was removed."""
        self._ended(job_info)
        super().report_job_success(job_info)

    def report_job_error(self, job_info: object, **more: object) -> None:
        """It has failed, and stays to be looked at."""
        self._ended(job_info)
        super().report_job_error(job_info, **more)

    def cancel_jobs(self, active_jobs: list[object]) -> None:  # noqa: ARG002 - may be fewer than there are
        """Remove all that have not ended."""
        super().cancel_jobs(list(self._unfinished))

    def _ended(self, job_info: object) -> None:
        if job_info in self._unfinished:  # not when it could not be submitted
            self._unfinished.remove(job_info)

    @property
    def _unfinished(self) -> list[object]:
        return vars(self).setdefault("submitted", [])

    def get_job_exec_prefix(self, job: object) -> str:  # noqa: ARG002 - Snakemake's interface
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
