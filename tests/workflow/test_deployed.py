"""Deployed by snakedeploy, from a git host and from a clone: the deployed workflow measures the demo's sweep.

The git host is a folder: git is told to take its repositories for those of the address.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROJECT
from support.checkout import Checkout

SNAKEDEPLOY = "snakedeploy==0.17.1"
ADDRESS = "https://github.com/example/loadstone"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="session")
def clone(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the project's files with a tag, below the folder that stands for the git host."""
    folder = tmp_path_factory.mktemp("host") / "example/loadstone"
    ignored = shutil.ignore_patterns(".venv", ".tools", "__pycache__", "assets")
    shutil.copytree(pristine, folder, ignore=ignored, symlinks=True)
    shutil.copytree(
        PROJECT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    git(folder, "init")
    git(folder, "add", "--all")
    git(folder, "commit", "-m", "release")
    git(folder, "tag", "v0")
    return folder


@pytest.mark.parametrize("source", ["git host", "clone"])
def test_it_measures_and_reports(
    clone: Path, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{clone.parents[1]}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    address = ADDRESS if source == "git host" else str(clone)
    deploy = [PROJECT / ".tools/uv/bin/uv", "tool", "run", "--quiet", "--python", sys.executable, "--from", SNAKEDEPLOY]
    deploy += ["snakedeploy", "deploy-workflow", address, tmp_path / "deployed", "--tag", "v0"]
    done = subprocess.run(deploy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    deployed = tmp_path / "deployed"
    snakefile = deployed / "workflow/Snakefile"
    if source == "clone":  # snakedeploy writes no path; its user does
        text = snakefile.read_text()
        snakefile.write_text(text.replace('"workflow/Snakefile"', f'"{clone}/workflow/Snakefile"'))
    (deployed / ".venv").symlink_to(PROJECT / ".venv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    user = Checkout(deployed, tmp_path / "user")
    user.run("--cores", "1", "open")
    said = user.run("--cores", "all")
    assert len(user.results()) == 4
    assert "relative to" in said
    assert (user.path / "reports/index.html").exists()
    assert user.jobs() == {}
    assert re.search(r"github\(|loadstone/workflow", snakefile.read_text())
    assert not os.path.lexists(user.path / "rules")
