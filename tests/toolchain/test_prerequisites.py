"""What a machine lacks is said in one line, with its remedy, before anything is made."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BASICS = ("sh", "cat", "cksum", "dirname", "mkdir")
OLD = 'case "$*" in *"sys.exit"*) exit 1;; *) echo "is 3.9.2";; esac'


def setup(copy: Path, path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "envs/setup.sh"],
        cwd=copy,
        env={"PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(copy: Path, result: subprocess.CompletedProcess[str]) -> str:
    """The one line with which set-up refused to begin."""
    assert result.returncode != 0
    assert result.stdout == ""
    assert not (copy / ".venv").exists()
    assert not (copy / ".tools" / "uv").exists()
    (line,) = result.stderr.splitlines()
    return line


def test_python_too_old(copy: Path, path_of: Callable[..., str]) -> None:
    line = refused(copy, setup(copy, path_of(*BASICS, "git", python3=OLD)))
    assert "Python 3.11 or newer is needed and python3 is 3.9.2" in line
    assert "apt-get install python3" in line
    assert "make setup PYTHON=" in line


def test_no_python(copy: Path, path_of: Callable[..., str]) -> None:
    assert "python3 does not run: install it" in refused(copy, setup(copy, path_of(*BASICS, "git")))


def test_named_python_too_old_though_another_would_do(copy: Path, path_of: Callable[..., str]) -> None:
    path = path_of(*BASICS, "git", python3=f'exec "{sys.executable}" "$@"', oldpython=OLD)
    assert "oldpython is 3.9.2" in refused(copy, setup(copy, path, PYTHON="oldpython"))


def test_python_without_venv(copy: Path, path_of: Callable[..., str]) -> None:
    bare = f'case "$*" in *ensurepip*) exit 1;; *) exec "{sys.executable}" "$@";; esac'
    line = refused(copy, setup(copy, path_of(*BASICS, "git", python3=bare)))
    assert "python3 has no modules venv and ensurepip" in line
    assert "apt-get install python3-venv" in line


def test_no_git(copy: Path, path_of: Callable[..., str]) -> None:
    line = refused(copy, setup(copy, path_of(*BASICS, python3=f'exec "{sys.executable}" "$@"')))
    assert "git is not on PATH" in line
    assert "apt-get install git" in line


@pytest.mark.parametrize("name", ["python3.11", "python3.14"])
def test_newer_python_beside_an_old_one_is_found(copy: Path, path_of: Callable[..., str], name: str) -> None:
    # It gets as far as that Python's missing venv: so it was found.
    bare = f'case "$*" in *ensurepip*) exit 1;; *) exec "{sys.executable}" "$@";; esac'
    path = path_of(*BASICS, "git", python3=OLD, **{name: bare})
    assert f"{name} has no modules venv and ensurepip" in refused(copy, setup(copy, path))


def test_unknown_argument(copy: Path) -> None:
    result = subprocess.run(
        ["sh", "envs/setup.sh", "everything"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "unknown argument everything" in result.stderr
