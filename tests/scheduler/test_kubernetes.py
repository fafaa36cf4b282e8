"""Jobs as a real control plane holds them. In place of machines, which it has none of, the test runs their commands."""

import base64
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cluster.api import Object, wait_until
from cluster.namespace import Namespace
from scheduler.conftest import SNAKEMAKE, require, tables_of

IMAGE = "example/python:3.11"


def volume_at(space: Namespace, path: str) -> None:
    """A volume for several machines, which a claim named `results` holds."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    spec = {"accessModes": modes, "storageClassName": ""}
    volume = spec | {"capacity": size, "hostPath": {"path": path}}
    space.api.create("PersistentVolume", {"metadata": {"name": space.name}, "spec": volume})
    space.create(
        "PersistentVolumeClaim", "results", spec=spec | {"volumeName": space.name, "resources": {"requests": size}}
    )


class Machine:
    """Runs the one container of each pod here, where the volume's folder is, and tells the cluster how that ended."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self.jobs: dict[str, Object] = {}
        self.secrets: dict[str, Object] = {}

    def work(self) -> None:
        """Everything that waits now."""
        for pod in self._namespace.all("Pod"):
            name = pod["metadata"]["labels"]["job-name"]
            if name not in self.jobs and pod.get("status", {}).get("phase") == "Running":
                self.jobs[name] = self._namespace.get("Job", name)
                self._run(pod)

    def _run(self, pod: Object) -> None:
        (container,) = pod["spec"]["containers"]
        environment = {each["name"]: self._secret(each["valueFrom"]["secretKeyRef"]) for each in container["env"]}
        plain = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        command = [*container["command"], *container["args"]]
        done = subprocess.run(command, cwd="/", env=plain | environment, capture_output=True, text=True, check=False)
        (status,) = pod["status"]["containerStatuses"]
        ended = {"terminated": {"exitCode": done.returncode}}
        phase = "Failed" if done.returncode else "Succeeded"
        told = {"phase": phase, "containerStatuses": [status | {"state": ended, "ready": False}]}
        self._namespace.api.patch("Pod", self._namespace.name, pod["metadata"]["name"], {"status": told}, "status")
        assert done.returncode == 0, done.stdout + done.stderr

    def _secret(self, reference: dict[str, Any]) -> str:
        secret = self._namespace.get("Secret", reference["name"])
        self.secrets[reference["name"]] = secret
        return base64.b64decode(secret["data"][reference["key"]]).decode()


@pytest.fixture
def small_archive(mixed_archive: Path, tmp_path: Path) -> Path:
    """One campaign: the commands of Jobs run one after the other."""
    shutil.copytree(mixed_archive / "tools", tmp_path / "archive/tools")
    return tmp_path / "archive"


@pytest.mark.slow
def test_jobs_are_as_declared_and_their_commands_make_the_same_tables(namespace, checkout, small_archive) -> None:
    require(None)
    here, there, space = checkout(small_archive), checkout(small_archive), namespace("analysis")
    volume = str(there.path.parent)
    volume_at(space, volume)
    options = ("--profile", "profiles/kubernetes", "--container-image", IMAGE, "--seconds-between-status-checks", "1")
    options += ("--kubernetes-shared-namespace", space.name, "--set-threads", "convert=2")
    options += ("--kubernetes-shared-persistent-volumes", f"results:{volume}", "--local-cores", "1")
    process = there.start("tables", *options)
    machine = Machine(space)

    def ended() -> bool:
        machine.work()
        return process.poll() is not None

    wait_until(ended, "the end of the workflow", 600)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    here.run("--cores", "1", "tables")
    assert tables_of(there) == tables_of(here)
    assert len(machine.jobs) == 2  # a campaign, the database
    for job in machine.jobs.values():
        assert job["metadata"]["labels"]["app"] == "snakemake" and job["spec"]["backoffLimit"] == 0
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        cores = 2 if "convert" in container["args"][1] else 1
        assert container["image"] == IMAGE and pod["restartPolicy"] == "Never"
        assert container["resources"]["requests"]["cpu"] == f"{950 * cores}m"
        assert container["resources"]["requests"]["memory"] == ("2G" if cores == 2 else "1G")
        assert container["resources"]["requests"]["ephemeral-storage"] == "1G"
        assert {"name": "results", "mountPath": volume} in container["volumeMounts"]
        assert {"name": "results", "persistentVolumeClaim": {"claimName": "results"}} in pod["volumes"]
        assert container["args"][1].startswith(f"cd {there.path} && ")
    assert [list(secret["data"]) for secret in machine.secrets.values()] == [["loadstone_command"]]
    assert left(space) == []


def left(space: Namespace) -> list[str]:
    """What the executor made and has not removed."""
    jobs = [job["metadata"]["name"] for job in space.all("Job") if "deletionTimestamp" not in job["metadata"]]
    return jobs + [secret["metadata"]["name"] for secret in space.all("Secret")]


_SUBMITTED = """
import signal, sys
from snakemake_executor_plugin_kubernetes_shared import delayed_interrupt
try:
    with delayed_interrupt():
        for number in range(int(sys.argv[1])):
            signal.raise_signal(signal.SIGINT)
            print("submitted", flush=True)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.parametrize(("signals", "submitted"), [(0, 0), (1, 1), (2, 1)])
def test_an_interrupt_waits_until_a_job_is_submitted_and_a_second_one_does_not(signals: int, submitted: int) -> None:
    require(None)
    command = [SNAKEMAKE / "bin/python", "-c", _SUBMITTED, str(signals)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = ["submitted"] * submitted + ["interrupted True" if signals else "not interrupted"]
    assert done.stdout.splitlines() == said


def test_an_interrupted_command_leaves_nothing_in_the_cluster(namespace, checkout, mixed_archive) -> None:
    require(None)
    there, space = checkout(mixed_archive), namespace("analysis")
    options = ("--profile", "profiles/kubernetes", "--container-image", IMAGE, "--seconds-between-status-checks", "1")
    process = there.start("tables", *options, "--kubernetes-shared-namespace", space.name)
    wait_until(lambda: process.poll() is not None or len(space.all("Job")) == 4, "four jobs")
    assert len(space.all("Secret")) == 1
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode != 0 and left(space) == [], output
