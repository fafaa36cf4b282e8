"""The `snakemake` commands of shell examples work: each as printed, as a dry run, which changes nothing."""

import shlex
from pathlib import Path

import pytest
from docs.documents import examples
from scheduler.conftest import SNAKEMAKE, require
from support import mixed
from support.checkout import PROJECT, Checkout

# These need a bucket, a site, files to import or a complete sweep even for a dry run: tests/workflow runs them so.
PREVIEWED = {"push", "pull", "publish", "import", "extend"}


def commands() -> dict[tuple[str, ...], str]:
    """The arguments of each command -> the first document that prints it."""
    found: dict[tuple[str, ...], str] = {}
    for example in examples("sh"):
        for line in example.text.replace("\\\n", " ").splitlines():
            if line.startswith("snakemake "):
                _, *arguments = shlex.split(line, comments=True)
                found.setdefault(tuple(arguments), example.document)
    return {arguments: document for arguments, document in found.items() if not PREVIEWED.intersection(arguments)}


COMMANDS = commands()
# By place, so that a test whose command is changed keeps its name.
NAMES = [f"{document}-{number}" for number, document in enumerate(COMMANDS.values())]


@pytest.fixture(scope="module")
def project(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Results, and a sweep of which no run is there yet."""
    checkout = Checkout(pristine, tmp_path_factory.mktemp("commands") / "checkout", rates=[100])
    mixed.write(checkout.archive)
    checkout.run("--cores", "1", "open")
    return checkout


def state(checkout: Checkout) -> dict[Path, int]:
    """Each file of results, reports and configuration, with its mtime."""
    folders = [checkout.path / name for name in ("config", "results", "reports")]
    return {file: file.stat().st_mtime_ns for folder in folders for file in folder.rglob("*")}


@pytest.mark.parametrize("arguments", COMMANDS, ids=NAMES)
def test_a_command_of_an_example_can_be_given(arguments: tuple[str, ...], project: Checkout) -> None:
    if "--profile" in arguments:
        require(None)
    # Snakemake knows a scheduler only where its executor is installed.
    installed = SNAKEMAKE if "--profile" in arguments else PROJECT / ".venv"
    (project.path / ".venv").unlink()
    (project.path / ".venv").symlink_to(installed)
    before = state(project)
    said = project.run("-n", *arguments)
    assert "total" in said or "Nothing to be done" in said
    assert state(project) == before


def test_the_guarantee_and_the_schedulers_have_such_commands() -> None:
    assert len(COMMANDS) > 12
    assert {"docs/guarantees.md", "docs/schedulers.md", "docs/gate.md"} <= {*COMMANDS.values()}
