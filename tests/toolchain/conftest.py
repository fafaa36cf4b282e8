"""What the tests of the toolchain share: the checkout, a copy of it that is not set up, and a bare PATH."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout under test."""
    return ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all that set-up reads, without anything that it makes."""
    folder = tmp_path / "a checkout"
    for name in ("envs", "profiles", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "Makefile", "README.md", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def path_of(tmp_path: Path) -> Callable[..., str]:
    """Makes a PATH that holds nothing but the named programs of this machine and the given scripts."""

    def make(*programs: str, **scripts: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for program in programs:
            found = shutil.which(program)
            if found is None:
                pytest.skip(f"this machine has no {program}")
            (folder / program).symlink_to(found)
        for name, text in scripts.items():
            script = folder / name
            script.write_text(f"#!/bin/sh\n{text}\n")
            script.chmod(0o755)
        return str(folder)

    return make
