"""Snakemake's executor for Kubernetes, for jobs that see the workflow's folder on a volume, at the same path.

Snakemake's own executor assumes that they do not: it uploads the sources and all inputs of every job, which works in an
empty folder. Here, jobs read and write archive, tables and pages in place.
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
    """Snakemake's executor sets a field that does not exist, which Kubernetes clients since version 36 refuse."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "containers":
            super().__setattr__(name, value)


kubernetes.client.V1JobSpec = JobSpec


@contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block. A second signal takes effect immediately."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, _: FrameType | None) -> None:
        if received:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
        received.append(number)

    for number in before:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


class Executor(Kubernetes):
    """Snakemake's executor, but jobs work in the workflow's folder, and an interrupted command leaves none behind.

    While Snakemake queries the status of jobs, its own list of them is empty: interrupted then, it would cancel none.
    """

    def run_job(self, job: object) -> None:
        """Submit a job, without interruption: otherwise it could be in the cluster, but in no list."""
        with delayed_interrupt():
            super().run_job(job)

    def report_job_submission(self, job_info: object) -> None:
        """A job was submitted."""
        self._unfinished.append(job_info)
        super().report_job_submission(job_info)

    def report_job_success(self, job_info: object) -> None:
        """A job succeeded and was removed."""
        self._ended(job_info)
        super().report_job_success(job_info)

    def report_job_error(self, job_info: object, **more: object) -> None:
        """A job failed; it is kept for inspection."""
        self._ended(job_info)
        super().report_job_error(job_info, **more)

    def cancel_jobs(self, active_jobs: list[object]) -> None:  # noqa: ARG002 - may be incomplete
        """Remove all jobs that have not ended."""
        super().cancel_jobs(list(self._unfinished))

    def _ended(self, job_info: object) -> None:
        if job_info in self._unfinished:  # absent if it could not be submitted
            self._unfinished.remove(job_info)

    @property
    def _unfinished(self) -> list[object]:
        return vars(self).setdefault("submitted", [])

    def get_job_exec_prefix(self, job: object) -> str:  # noqa: ARG002 - Snakemake's interface
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
