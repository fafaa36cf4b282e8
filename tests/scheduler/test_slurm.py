"""What computes runs as jobs of a real Slurm, gives the same tables as here, and survives the death of a machine."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from cluster.api import wait_until
from loadstone.publish import bundle
from scheduler.conftest import tables_of
from support.checkout import Checkout

# Slurm is asked often, and its only node has two cores.
SLURM = ("--profile", "profiles/slurm", "--set-threads", "convert=1", "--slurm-status-command", "squeue")
SLURM += ("--slurm-init-seconds-before-status-checks", "1")


def inodes(checkout: Checkout) -> dict[Path, int]:
    """Of each table, and each record that one was written: another one when it is written again.

    Not the time: Snakemake touches the outputs of a job when it notices that it is done.
    """
    tables = checkout.path / "results/tables"
    found = [*bundle.table_files(tables), *(path for path in tables.glob(".done/*/*/*/*") if path.name.isdigit())]
    return {path: path.stat().st_ino for path in found}


@pytest.mark.slow
def test_a_machine_that_dies_costs_its_own_jobs_and_tables_are_those_made_here(slurm, checkout, mixed_archive) -> None:
    here, there = checkout(mixed_archive), checkout(mixed_archive)
    process = there.start(*SLURM, "tables")

    def campaigns(state: str) -> list[str]:
        assert process.poll() is None, process.communicate()[0]
        jobs = slurm.ask("squeue", "-h", "-o", "%i %k", "-t", state).splitlines()
        return [number for number, what in map(str.split, jobs) if what.startswith("rule_campaign_")]

    def campaign(job: str) -> tuple[str, ...]:
        script = slurm.ask("scontrol", "write", "batch_script", job, "-")
        (found,) = set(re.findall(r"convert:app=(.*?),host=(.*?),timestamp=(.*?),", script))
        return found

    wait_until(lambda: next(filter(slurm.hold, campaigns("RUNNING")), None), "the processes of a campaign's job")
    wait_until(lambda: campaigns("COMPLETED"), "the end of another campaign's job")
    # A campaign whose job has not said that it is done may have all of its tables. They are made again.
    done = [campaign(job) for job in campaigns("COMPLETED")]
    finished = {
        path: inode
        for path, inode in inodes(there).items()
        if any(all(part in str(path) for part in one) for one in done)
    }
    slurm.kill_node()
    slurm.start_node()
    wait_until(lambda: "Restarts=1" in slurm.ask("scontrol", "show", "jobs"), "a job that begins again")
    here.run("--cores", "1", "tables")
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert tables_of(there) == tables_of(here)
    kept = {path: inode for path, inode in inodes(there).items() if path in finished}
    assert any(path.parent.parent.parent.parent.name == ".done" for path in kept) and kept == finished
    assert there.jobs(*SLURM, "tables") == {}


def test_runs_are_collected_here_and_nowhere_else(slurm, checkout) -> None:
    sweep = checkout(variants=["plain"], runs=1)
    sweep.run("--cores", "1", "open")
    before = set(slurm.ask("squeue", "-h", "--states=all", "-o", "%i").split())
    sweep.run(*SLURM, "--cores", "2", "attacks")
    assert len(sweep.results()) == 1
    assert set(slurm.ask("squeue", "-h", "--states=all", "-o", "%i").split()) == before


def test_a_job_elsewhere_can_not_attack(slurm, checkout) -> None:
    """A group of the user's own would send it there."""
    sweep = checkout(variants=["plain"], runs=1)
    sweep.run("--cores", "1", "open")
    sweep.run(*SLURM, "--groups", "collect=elsewhere", "--cores", "2", "attacks", expect=1)
    assert sweep.results() == []
    (log,) = sweep.path.glob(".snakemake/slurm_logs/*/*.log")
    assert "only the machine on which the command was given may attack" in log.read_text()


def cells(checkout: Checkout) -> list[Path]:
    return list(bundle.table_files(checkout.path / "results/tables"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_job_that_outlives_its_command_in_the_queue_does_nothing(
    slurm, checkout, mixed_archive, number: signal.Signals
) -> None:
    """Slurm has accepted it, but sbatch had not yet told Snakemake its number, so nobody cancels it."""
    there, sbatch = checkout(mixed_archive), slurm.folder / "bin/sbatch"
    sbatch.write_text(f'#!/bin/sh\nnumber=$({shutil.which("sbatch")} "$@"); sleep 5; echo $number\n')
    sbatch.chmod(0o755)
    slurm.ask("scontrol", "update", "PartitionName=main", "State=DOWN")

    def waiting() -> list[str]:
        return slurm.ask("squeue", "-h", "-o", "%i").split()

    try:
        # Snakemake would remove folders of logs that are empty, without which Slurm starts no job.
        process = there.start(*SLURM, "--slurm-delete-logfiles-older-than", "0", "tables")
        wait_until(lambda: process.poll() is not None or waiting(), "a submission")
        os.killpg(process.pid, number)
        output, _ = process.communicate(timeout=100)
        assert waiting(), output
        if number == signal.SIGKILL:  # the next command notices it
            there.run("--cores", "1", "tables")
        before = inodes(there)
    finally:
        sbatch.unlink()
        slurm.ask("scontrol", "update", "PartitionName=main", "State=UP")
    wait_until(lambda: not waiting(), "the end of the jobs that are left")
    assert inodes(there) == before
    logs = [path.read_text() for path in there.path.glob(".snakemake/slurm_logs/*/*.log")]
    assert logs and all("either its command has ended" in log for log in logs)
    if number == signal.SIGINT:
        assert process.returncode == 1 and before == {}
        assert "This command was interrupted. What was finished is kept. To go on, run it again: snakemake" in output
        assert not re.search("Exception|Traceback", output), output
        there.run("--cores", "1", "tables")
