"""Invariants 1 and 2 under SIGKILL, SIGTERM and a full disk: nothing half-made under a final name, none left running.

And the next invocation collects exactly what is missing.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from loadstone.process import find
from support.checkout import Checkout, assert_whole

SWEEP = {"variants": ["plain", "envoy"], "rates": [1500], "runs": 2, "duration": "700ms"}


@pytest.fixture
def checkout(pristine: Path, tmp_path: Path) -> Checkout:
    checkout = Checkout(pristine, tmp_path / "checkout", **SWEEP)
    checkout.run("--cores", "1", "open")
    return checkout


def finish(checkout: Checkout, before: dict[str, str]) -> None:
    """The next invocation collects exactly what is missing and changes nothing that was there."""
    missing = 4 - len(checkout.results())
    output = checkout.run("--cores", "all", "attacks")
    assert output.count("] plain at") + output.count("] envoy at") <= missing
    assert len(checkout.results()) == 4
    assert before.items() <= checkout.contents().items()
    assert not list(checkout.archive.rglob(".*.part"))
    assert (checkout.campaign / "completion_time.txt").exists()
    assert_whole(checkout)
    checkout.wait_idle()


def victims(checkout: Checkout, name: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if name in " ".join(process.cmdline()[:3]) and Path(process.cwd()) == checkout.path:
                found.append(process)
        except (psutil.Error, OSError):  # gone, or a zombie
            continue
    return found


@pytest.mark.parametrize("seed", range(4))
def test_snakemake_killed_at_any_moment(checkout: Checkout, seed: int) -> None:
    process = checkout.start("--cores", "all", "attacks")
    time.sleep(random.Random(seed).uniform(2.0, 9.0))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.wait_idle()
    assert_whole(checkout)
    finish(checkout, {file: digest for file, digest in checkout.contents().items() if ".part/" not in file})


@pytest.mark.parametrize("name", ["paced", "vegeta encode", "collect.py", "envoy"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_one_process_of_the_job_killed(checkout: Checkout, name: str, number: int) -> None:
    process = checkout.start("--cores", "all", "attacks")
    found = []
    while not found and process.poll() is None:
        found = victims(checkout, name)
    if not found:
        pytest.skip(f"{name} was over each time before this test saw it")
    for victim in found:
        try:
            victim.send_signal(number)
        except psutil.NoSuchProcess:
            pytest.skip(f"{name} was over before this test could kill it")
    output, _ = process.communicate(timeout=600)
    # A signal in the last moment of a program's life changes nothing.
    assert process.returncode != 0 or len(checkout.results()) == 4, output
    checkout.wait_idle()
    assert_whole(checkout)
    finish(checkout, {file: digest for file, digest in checkout.contents().items() if ".part/" not in file})


@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGINT, "was interrupted"), (signal.SIGTERM, "was terminated (SIGTERM)")]
)
def test_ctrl_c_leaves_nothing_running_and_says_how_to_go_on(
    checkout: Checkout, number: signal.Signals, how: str
) -> None:
    process = checkout.start("--cores", "all", "attacks")
    while process.poll() is None and not (checkout.results() and victims(checkout, "paced")):
        time.sleep(0.01)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=600)
    checkout.wait_idle()
    done = len(checkout.results())
    assert process.returncode == 1 and done < 4
    said = (
        f"This command {how}. Collected and kept: {done} of 4 missing runs; an interrupted run is not in the "
        "archive. The processes of the target have ended. To go on, run it again: snakemake --cores all attacks"
    )
    assert said in output
    assert not re.search("Exception|Error|Traceback|failed|successfully", output), output
    (log,) = [path for path in checkout.path.glob(".snakemake/log/*.log") if how in path.read_text()]
    assert "At least one job did not complete" in log.read_text()  # nothing is hidden there
    finish(checkout, {file: digest for file, digest in checkout.contents().items() if ".part/" not in file})


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("killed", ["", "snakemake", "collect.py"])
def test_a_daemon_of_the_target_ends_with_its_run(pristine: Path, tmp_path: Path, killed: str) -> None:
    """A child in a session of its own, whose parent has ended."""
    pids, checkout = tmp_path / "pids", Checkout(pristine, tmp_path / "checkout", **SWEEP)
    target = checkout.declared()["target"]
    for process in target["processes"].values():
        program, *arguments = process["command"]
        script = f"(setsid sh -c 'echo $$ >> {pids}; exec sleep 1000' &); exec \"$@\""
        process["command"] = ["sh", "-c", script, "sh", find(program), *arguments]
    checkout.replace(target=target)
    checkout.run("--cores", "1", "open")
    command = checkout.start("--cores", "all", "attacks")
    if killed:
        while command.poll() is None and not victims(checkout, "paced"):
            time.sleep(0.01)
        for victim in victims(checkout, killed):
            victim.kill()
    output, _ = command.communicate(timeout=600)
    checkout.wait_idle()
    found = [int(pid) for pid in pids.read_text().split()]
    assert found and not any(map(psutil.pid_exists, found)), output
    logs = "".join(path.read_text() for path in checkout.path.glob("logs/collect/**/*.log"))
    for pid in found:
        assert f"sleep (process {pid})" in logs
        assert killed or f"had left others running, which were ended: sleep (process {pid})" in output
    if killed:
        finish(checkout, {})


def test_a_job_that_died_between_its_links_is_finished_without_an_attack(checkout: Checkout) -> None:
    checkout.run("--cores", "all", "attacks")
    (checkout.campaign / "completion_time.txt").unlink()
    results = checkout.results()[0]
    run = results.name.partition(".")[0]
    staging = results.parent / f".{run}.part"
    staging.mkdir()
    mine = [file for file in results.parent.iterdir() if file.name.startswith(f"{run}.")]
    for file in mine:
        os.link(file, staging / file.name)
    (staging / "SEALED").touch()
    before = checkout.contents()
    for file in mine[1:]:
        file.unlink()
    results.unlink(missing_ok=True)
    output = checkout.run("--cores", "all", "attacks")
    assert "completing it" in output
    kept = {file: digest for file, digest in before.items() if ".part/" not in file}
    assert kept.items() <= checkout.contents().items()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_ends_with_a_clear_error_and_earlier_results_intact(checkout: Checkout, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)], check=True)
    try:
        (checkout.path / "results/archive").rename(checkout.path / "results/unused")
        checkout.configure(archive=str(disk / "archive"))
        checkout.run("--cores", "1", "open")
        filler = disk / "filler"
        one_run = 5_000_000  # in vegeta's binary format
        process = checkout.start("--cores", "all", "attacks")
        while process.poll() is None and not list((disk / "archive").rglob("1.results.json.zst")):
            time.sleep(0.01)
        output = None
        with filler.open("ab") as file:
            while output is None:  # what one run gives back must not be enough for the next
                free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
                file.write(b"\0" * max(0, free - one_run // 2))
                file.flush()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, _ = process.communicate(timeout=0.05)
        assert process.returncode != 0
        assert "space" in output.lower(), output
        first = {str(file): file.read_bytes() for file in disk.rglob("[0-9]*.*") if ".part" not in str(file)}
        assert first
        filler.unlink()
        checkout.run("--cores", "all", "attacks")
        assert len(list((disk / "archive").rglob("*.results.json.zst"))) == 4
        assert all(Path(file).read_bytes() == content for file, content in first.items())
        checkout.wait_idle()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
