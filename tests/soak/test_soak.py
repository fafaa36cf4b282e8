"""Sweeps under faults at random, and what must hold after each: ``make soak SEED=7 MINUTES=30``.

An episode opens a sweep of short runs and starts its commands several times; meanwhile processes are killed, the disk
is full, the clock jumps, the network is cut, the API server is gone. Then nothing interferes with one more command.
Archive, cluster, tables and site must be as if nothing had ever interfered.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from cluster.control_plane import ControlPlane
from cluster.network import own_network
from cluster.shop import Shop, gateway, record_of, shop_sweep
from loadstone.archive import campaigns, scan_campaign
from loadstone.publish.site import files
from support.checkout import PROJECT, Checkout, assert_whole, free_ports, kill_all
from support.clock import Clock

MINUTES = float(os.environ.get("LOADSTONE_SOAK_MINUTES", "1"))
SEED = int(os.environ.get("LOADSTONE_SOAK_SEED") or random.randrange(1_000_000))
EPISODE = int(os.environ.get("LOADSTONE_SOAK_EPISODE", "0"))  # this one alone
SERVER = PROJECT / "tests/support/server.py"
DISK = "48m"
SWEEP = {"rates": [50, 100], "runs": 4, "duration": "300ms", "timeout": "1s", "give_up_after": 100}
RUNS = 16
COMMANDS = 6  # at most
ENDS = ("power loss", "one is killed", "Ctrl-C")  # of `processes_end`

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
Fault = Callable[[subprocess.Popen[bytes]], None]


@dataclass
class Episode:
    """One sweep; `log` is what was done to it and when, `faults` what can be."""

    checkout: Checkout
    chance: random.Random
    check_target: Callable[[], None]
    log: list[str] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def say(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Snakemake in the background."""
        self.say(f"snakemake {' '.join(arguments)}")
        with (self.checkout.path / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [self.checkout.path / ".venv/bin/snakemake", *arguments],
                cwd=self.checkout.path,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | self.environment,
                start_new_session=True,
            )

    def run(self, *arguments: str) -> None:
        """Snakemake to its end, which is a good one."""
        code = self.start(*arguments).wait(timeout=600)
        assert code == 0, f"exit code {code}"

    def interfere(self, process: subprocess.Popen[bytes]) -> None:
        """Several faults while a command runs, most of them while a run is collected."""
        for _ in range(self.chance.randint(2, 8)):
            if self.chance.random() < 0.75:
                self._wait_for_a_file(process)
                longest_s = 1.0
            else:
                longest_s = 8.0
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0, longest_s))
            if process.poll() is not None:
                return
            # Half of them end processes: that leaves the most unfinished.
            name = self.chance.choice(sorted(self.faults) if self.chance.random() < 0.5 else ENDS)
            self.say(f"{name}, with {len(self.checkout.results())} runs collected")
            self.faults[name](process)

    def _wait_for_a_file(self, process: subprocess.Popen[bytes]) -> None:
        """Until the archive has another file or the command has ended, but not for long."""
        before, until = self._n_files(), time.monotonic() + 5
        while process.poll() is None and self._n_files() <= before and time.monotonic() < until:
            time.sleep(0.02)

    def _n_files(self) -> int:
        return sum(len(names) for _, _, names in os.walk(self.checkout.archive))

    def kept(self) -> dict[str, str]:
        """The archive's files under final names, with their SHA-256."""
        return {name: digest for name, digest in self.checkout.contents().items() if ".part/" not in name}


# --- faults ----------------------------------------------------------------------------------------------------------


def processes_end(episode: Episode) -> dict[str, Fault]:
    """All at once, one of them, or those of the terminal."""

    def one(_: subprocess.Popen[bytes]) -> None:
        number = episode.chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        with contextlib.suppress(psutil.Error, IndexError):
            victim = episode.chance.choice(episode.checkout.processes())
            episode.say(f"{number.name} to {' '.join(victim.cmdline())[:100]}")
            victim.send_signal(number)

    def terminal(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)

    return dict(zip(ENDS, (lambda process: kill_all(episode.checkout, process), one, terminal), strict=True))


def disk_is_full(episode: Episode) -> Fault:
    """For a moment; as good as full, so that small files still fit."""

    def fill(_: subprocess.Popen[bytes]) -> None:
        results = episode.checkout.path / "results"
        filler, left = results / ".filler", episode.chance.choice([0, 4096, 100_000])
        until = time.monotonic() + episode.chance.uniform(0.5, 3)
        while time.monotonic() < until:  # also what others give back
            found = os.statvfs(results)
            with contextlib.suppress(OSError), filler.open("ab") as file:
                file.write(b"\0" * max(0, found.f_bavail * found.f_bsize - left))
            time.sleep(0.05)
        filler.unlink(missing_ok=True)

    return fill


def clock_jumps(episode: Episode, clock: Clock) -> Fault:
    return lambda _: clock.jump(episode.chance.choice([-3600, -30, 30, 3600]))


def network_is_cut(episode: Episode) -> Fault:
    """Loopback of the network that all of the episode's processes are in."""

    def cut(_: subprocess.Popen[bytes]) -> None:
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        time.sleep(episode.chance.uniform(0.1, 2))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    return cut


def api_is_gone(episode: Episode, plane: ControlPlane) -> dict[str, Fault]:
    def killed(_: subprocess.Popen[bytes]) -> None:
        with plane.api_killed():
            time.sleep(episode.chance.uniform(0, 3))

    def frozen(_: subprocess.Popen[bytes]) -> None:
        with plane.api_frozen():
            time.sleep(episode.chance.uniform(1, 10))  # longer than the Lease lasts, or not

    return {"API server killed": killed, "API server frozen": frozen}


# --- targets ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def of_processes(pristine: Path, folder: Path, chance: random.Random, _: Shop) -> Iterator[Episode]:
    """Two small servers, in a network of their own."""
    with own_network():
        checkout = Checkout(pristine, folder / "checkout")
        served, processes, variants = folder / "served", {}, {}
        served.mkdir()
        for name, port in zip(("one", "other"), free_ports(2), strict=True):
            command = [sys.executable, str(SERVER), str(port), str(served)]
            processes[name] = {"command": command, "port": port, "ready": f"http://127.0.0.1:{port}/ready"}
            expect = {"status": 200, "body_contains": "the page"}
            variants[name] = {"url": f"http://127.0.0.1:{port}/page", "processes": [name], "expect": expect}
        target = {"kind": "local", "processes": processes, "variants": variants, "ready_timeout": "10s"}
        checkout.replace(target=target)
        checkout.configure(sweep=SWEEP | {"variants": list(variants)})
        episode, clock = Episode(checkout, chance, lambda: None), Clock(folder / "clock")
        episode.environment = clock.environment
        episode.faults = {"network cut": network_is_cut(episode), "clock jumps": clock_jumps(episode, clock)}
        yield episode


@contextlib.contextmanager
def of_cluster(pristine: Path, folder: Path, chance: random.Random, shop: Shop) -> Iterator[Episode]:
    """Two variants of a shop, scaled to zero in turn."""
    before = shop.state()

    def check() -> None:
        assert shop.state() == before
        assert record_of(shop) is None

    with gateway() as served:
        checkout = shop_sweep(pristine, folder / "checkout", shop, served.url, **SWEEP, variants=["plain", "filter"])
        episode = Episode(checkout, chance, check)
        episode.faults = api_is_gone(episode, shop.plane)
        yield episode


# --- what must hold --------------------------------------------------------------------------------------------------


def derived(checkout: Checkout) -> dict[str, bytes]:
    """Tables and site, without the page that says when they were made, and what a kill may leave for a day."""
    found = [*(checkout.path / "results/tables").rglob("*.parquet"), *(checkout.path / "reports").rglob("*")]
    known = {file.relative_to(checkout.path).as_posix(): file for file in found if file.is_file()}
    return {
        name: file.read_bytes()
        for name, file in known.items()
        if file.name != "progress.html" and not re.fullmatch(r"\.[a-z0-9_]{8}\.tmp", file.name)
    }


def check_derived(episode: Episode, pristine: Path, folder: Path) -> None:
    """They are whole, and those of the same archive made from scratch."""
    files.check_complete(files.of_site(episode.checkout.path / "reports"))
    twin = episode.checkout.copy(folder)
    for name in ("results/tables", "reports", ".snakemake"):
        shutil.rmtree(twin.path / name)
    for path in (twin.path / "results").glob("*.duckdb"):
        path.unlink()
    shutil.copytree(pristine / "reports", twin.path / "reports", symlinks=True)
    twin.run("--cores", "all")
    found, expected = derived(episode.checkout), derived(twin)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


def run_episode(episode: Episode, pristine: Path, folder: Path) -> None:
    """An episode, and what must hold after each of its commands and at its end."""
    checkout, kept = episode.checkout, dict[str, str]()
    episode.run("--cores", "1", "open")
    for _ in range(COMMANDS):
        if len(checkout.results()) == RUNS:
            break
        process = episode.start("--cores", "all", *episode.chance.choice([("attacks",), ()]))
        episode.interfere(process)
        episode.say(f"exit code {process.wait(timeout=600)}")
        checkout.wait_idle(120)
        found = episode.kept()
        assert kept.items() <= found.items(), "an archived file was changed or is gone"
        assert_whole(checkout)
        kept = found
    episode.environment = {}
    episode.run("--cores", "all")
    checkout.wait_idle(60)
    assert kept.items() <= episode.kept().items()
    assert_whole(checkout)
    assert len(checkout.results()) == RUNS
    assert not list(checkout.archive.rglob(".*.part"))
    assert [scan_campaign(campaign).problems for campaign in campaigns(checkout.archive)] == [[]]
    assert (checkout.campaign / "completion_time.txt").exists()
    episode.check_target()
    check_derived(episode, pristine, folder / "twin")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Whatever `folder` holds is on a file system of its own."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_nothing_is_lost_whatever_happens(pristine: Path, tmp_path: Path, plane: ControlPlane, capsys) -> None:
    shop = Shop(plane)
    until = time.monotonic() + 60 * MINUTES
    number = EPISODE or 1
    while True:
        chance, folder = random.Random(f"{SEED} {number}"), tmp_path / str(number)
        folder.mkdir()
        kind = chance.choice([of_processes, of_processes, of_cluster])
        began = time.monotonic()
        with kind(pristine, folder, chance, shop) as episode, small_disk(episode.checkout.path / "results"):
            episode.faults |= processes_end(episode) | {"disk is full": disk_is_full(episode)}
            try:
                run_episode(episode, pristine, folder)
            except BaseException as error:
                output = (episode.checkout.path / "output.txt").read_text(errors="replace")
                error.add_note("\n".join([f"make soak SEED={SEED} EPISODE={number}", *episode.log, output[-4000:]]))
                raise
        shutil.rmtree(folder)
        with capsys.disabled():
            faults = "; ".join(text[9:] for text in episode.log)
            print(f"\n{time.monotonic() - began:.0f} s: seed {SEED}, episode {number}: {faults}", flush=True)
        if EPISODE or time.monotonic() > until:
            return
        number += 1
