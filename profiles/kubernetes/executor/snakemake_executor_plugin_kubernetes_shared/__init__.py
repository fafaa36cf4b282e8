"""Snakemake's executor for Kubernetes, for jobs that see the workflow's folder on a volume, under its own name.

Snakemake's own takes it that they don't: it would upload the sources and every input of every job, and give it an empty
folder to work in. Here jobs read and write archive, tables and pages in place.
"""

import shlex
from dataclasses import replace

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


class Executor(Kubernetes):
    """Differs by where a job works."""

    def get_job_exec_prefix(self, job: object) -> str:  # noqa: ARG002 - Snakemake's interface
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
