"""A checkout of its own for one test, with a small sweep against real Envoys on ports of its own."""

import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
import zstandard
from loadstone.archive import parse_name

from support import commands

PROJECT = Path(__file__).resolve().parents[2]
_DEMO_PORTS = {"18080": 0, "18081": 1, "18082": 2, "18083": 3}


def copy_project(folder: Path) -> Path:
    """The project's files without results and tests, with links to what is installed; returns `folder`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = PROJECT / name
        if source.is_file() and not name.startswith("tests/"):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(PROJECT / name)
    return folder


class Checkout:
    """`path` holds the project's files; `sweep` replaces keys of the demo's sweep."""

    def __init__(self, pristine: Path, path: Path, **sweep: Any) -> None:
        shutil.copytree(pristine, path, symlinks=True)
        self.path = path
        base = free_ports(len(_DEMO_PORTS))
        for file in [path / "config/config.yaml", *(path / "config/demo").glob("*.yaml")]:
            text = file.read_text()
            for port, offset in _DEMO_PORTS.items():
                text = re.sub(rf"\b{port}\b", str(base[offset]), text)
            file.write_text(text)
        small = {"variants": ["plain", "envoy"], "rates": [50], "runs": 2, "duration": "300ms"}
        self.configure(sweep={**small, "warmup": {"duration": "100ms", "min_rate": 20}, **sweep})

    def copy(self, path: Path) -> "Checkout":
        """The same, archive and tables included, somewhere else."""
        shutil.copytree(self.path, path, symlinks=True)
        twin = object.__new__(Checkout)
        twin.path = path
        return twin

    def configure(self, **changes: dict[str, Any]) -> None:
        """Update sections of config/config.yaml."""
        file = self.path / "config/config.yaml"
        config = yaml.safe_load(file.read_text())
        for section, keys in changes.items():
            config[section] = {**config[section], **keys} if isinstance(keys, dict) else keys
        file.write_text(yaml.safe_dump(config, sort_keys=False))

    def declared(self) -> dict[str, Any]:
        """What config/config.yaml says."""
        content: dict[str, Any] = yaml.safe_load((self.path / "config/config.yaml").read_text())
        return content

    def replace(self, **sections: Any) -> None:
        """Set whole sections of config/config.yaml."""
        file = self.path / "config/config.yaml"
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **sections}, sort_keys=False))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Snakemake in the background, in a process group of its own; output merged."""
        command = [str(self.path / ".venv/bin/snakemake"), *arguments]
        return subprocess.Popen(
            command,
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, expect: int = 0, timeout: float = 600) -> str:
        """Snakemake to its end; its output. Fails unless it exits with `expect`."""
        if (self.path / ".venv").resolve() == (PROJECT / ".venv").resolve():
            returncode, output = commands.run(self.path, arguments, timeout)
        else:  # another Snakemake than ours, which a fork of ours is not
            process = self.start(*arguments)
            output, _ = process.communicate(timeout=timeout)
            returncode = process.returncode
        assert returncode == expect, output
        return output

    def jobs(self, *arguments: str) -> dict[str, int]:
        """Rule -> number of jobs that a dry run with these arguments plans."""
        output = self.run("-n", *arguments)
        table = re.search(r"^job\s+count\n[- ]+\n(.*?)^total", output, re.DOTALL | re.MULTILINE)
        if table is None:
            assert "Nothing to be done" in output, output
            return {}
        return {row.split()[0]: int(row.split()[1]) for row in table[1].splitlines()}

    @property
    def archive(self) -> Path:
        return self.path / "results/archive"

    @property
    def campaign(self) -> Path:
        (campaign,) = self.archive.glob("*/*/*")
        return campaign

    def results(self) -> list[Path]:
        return sorted(self.archive.glob("*/*/*/*/*/*.results.json.zst"))

    def contents(self) -> dict[str, str]:
        """Every file of the archive with the SHA-256 of its content."""
        return {
            str(file.relative_to(self.archive)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(self.archive.rglob("*"))
            if file.is_file()
        }

    def processes(self) -> list[psutil.Process]:
        """What still runs with this checkout as its working folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()) == self.path and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def command_lines(self) -> list[list[str]]:
        """What these were started with, without those that have ended meanwhile."""
        found = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                found.append(process.cmdline())
        return found

    def wait_idle(self, timeout_s: float = 15.0) -> None:
        """Wait until nothing of this checkout runs any more; fails after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while left := self.processes():
            assert time.monotonic() < deadline, [process.cmdline() for process in left]
            time.sleep(0.05)


def assert_whole(checkout: Checkout) -> None:
    """Every file under a final name is complete: frames end, and a run with results has all its files, matching."""
    for file in checkout.archive.rglob("*.zst"):
        if parse_name(file.name) and ".part" not in file.parent.name:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            content = decompressor.decompress(file.read_bytes())
            assert decompressor.eof and content.endswith(b"\n" if ".csv" in file.name else b"}\n"), file
    for results in checkout.results():
        run = results.name.partition(".")[0]
        sums = (results.parent / f"{run}.sha256").read_text().splitlines()
        files = {file.name for file in results.parent.glob(f"{run}.*")} - {f"{run}.sha256"}
        files -= {file.name for file in results.parent.glob(f"{run}.failure.*")}  # written before the results exist
        assert files == {line.partition("  ")[2] for line in sums}, f"checksums of run {run}"
        subprocess.run(["sha256sum", "--check", "--quiet", f"{run}.sha256"], cwd=results.parent, check=True)


def kill_all(checkout: Checkout, process: subprocess.Popen[str]) -> None:
    """Everything of a checkout at once, as a power loss would: Snakemake, its jobs, its keeper."""
    found = checkout.processes()
    for each in found:
        with suppress(psutil.Error):
            each.suspend()
    for each in [*found, *checkout.processes()]:
        with suppress(psutil.Error):
            each.kill()
    process.communicate()
    checkout.wait_idle()


_PORTS, _WORKERS = range(12_000, 30_000), 8


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens now, below those that the kernel gives to outgoing connections.

    A client could get such a port as its own, and keep a server that is started again from it. Every worker has ports
    of its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    first, each = _PORTS.start + worker * len(_PORTS) // _WORKERS, len(_PORTS) // _WORKERS
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(first, first + each)
        if port in found or str(port) in _DEMO_PORTS:
            continue
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found
