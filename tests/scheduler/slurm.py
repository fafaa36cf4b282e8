"""A real Slurm of one node: munged, slurmctld and slurmd on free ports of loopback, in a folder of its own.

There is no accounting, so `squeue` alone knows jobs. All is started by a Supervisor: nothing of it outlives the tests.
"""

import os
import secrets
import shutil
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
from cluster.api import wait_until
from loadstone.process import Program, Supervisor
from support.checkout import free_ports

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_STILL = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_TRACING_STOP)
_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
# A job that is put back into the queue waits until its credential has expired.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdTimeout=10
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why there can be no Slurm here."""
    for name in ("munged", "slurmctld", "slurmd", "sbatch"):
        if shutil.which(name, path=_PATH) is None:
            return f"{name} is not installed (Debian: apt-get install slurm-wlm munge)"
    if os.getuid() != 0:
        return "only root may start a Slurm"
    return None


class Slurm:
    """Started by `with`. `environment` is for those who submit jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "slurm.conf"
        self.environment = os.environ | {"SLURM_CONF": str(self._file), "PATH": f"{folder / 'bin'}:{_PATH}"}
        self._programs: dict[str, Program] = {}

    def __enter__(self) -> "Slurm":
        for name in ("munge", "state", "spool", "bin"):
            (self.folder / name).mkdir(parents=True)
        controller, node = free_ports(2)
        self._file.write_text(_CONFIGURATION.format(host=_host(), controller=controller, node=node, folder=self.folder))
        self._write_srun()
        with ExitStack() as stack:
            self._supervisor = stack.enter_context(Supervisor())
            stack.callback(self._stop)
            self._start_munge()
            self._run("slurmctld", "-D", "-f", str(self._file))
            self.start_node()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_node(self) -> None:
        """Start slurmd, and wait until jobs can run."""
        self._run("slurmd", "-D", "-f", str(self._file))
        wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T") in {"idle", "mixed", "allocated"}, "a node of Slurm")

    def hold(self, job: str) -> bool:
        """Let the processes of a job stand still, so that it can't end; False when it has none yet."""
        while moving := [each for each in self._on_node(job) if each.status() not in _STILL]:
            for process in moving:
                with suppress(psutil.Error):
                    process.suspend()
        return bool(self._on_node(job))

    def kill_node(self) -> None:
        """As a power loss would end it, with all of its jobs; returns when Slurm has noticed."""
        self._programs.pop("slurmd").stop(0)
        while jobs := self._on_node():
            for job in jobs:
                with suppress(psutil.Error):
                    job.kill()
            psutil.wait_procs(jobs, 10)
        wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T").startswith("down"), "Slurm to miss its node")

    def ask(self, program: str, *arguments: str) -> str:
        """What a command of Slurm prints; empty when it fails."""
        command = [_found(program), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False).stdout.strip()

    def _write_srun(self) -> None:
        """Snakemake's jobs call srun without the variable that names our configuration."""
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self._file} exec {_found("srun")} "$@"\n')
        srun.chmod(0o755)

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        key = folder / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}
        files = [f"--{option}={folder / name}" for option, name in names.items()]
        self._run("munged", "--foreground", "--force", *files)
        wait_until((folder / "socket").exists, "munged")

    def _run(self, name: str, *arguments: str) -> None:
        log, environment = self.folder / "logs" / f"{name}.log", {"SLURM_CONF": str(self._file)}
        self._programs[name] = Program([_found(name), *arguments], self._supervisor, log, environment=environment)

    def _on_node(self, job: str | None = None) -> list[psutil.Process]:
        """What runs jobs of this Slurm, and the jobs: slurmd starts them in sessions of their own.

        First what would tell Slurm how a job ended; it is known by its socket, for it has overwritten its environment.
        Of one job only its own processes.
        """
        found: list[psutil.Process] = []
        prefix = f"{self.folder}/spool/{_host()}_" + ("" if job is None else f"{job}.")
        for process in psutil.process_iter(["name"]):
            with suppress(psutil.Error):
                if process.info["name"] == "slurmstepd" and any(
                    str(each.laddr).startswith(prefix) for each in process.net_connections("unix")
                ):
                    jobs = process.children(recursive=True)
                    found += [process, *jobs] if job is None else jobs
        return found

    def _stop(self) -> None:
        for process in self._on_node():
            with suppress(psutil.Error):
                process.kill()
        for program in self._programs.values():
            program.stop()


def _host() -> str:
    return socket.gethostname().split(".")[0]


def _found(program: str) -> str:
    return shutil.which(program, path=_PATH) or program
