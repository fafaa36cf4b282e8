"""A Slurm, and checkouts whose jobs it runs: its machines would share this folder, as here they do."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loadstone.publish import bundle
from scheduler.slurm import Slurm, missing
from support import mixed
from support.checkout import PROJECT, Checkout

SNAKEMAKE = PROJECT / ".tools/schedulers"


def require(why: str | None) -> None:
    """Skip for this reason; fail instead where schedulers are required (.ci/run)."""
    if not (SNAKEMAKE / "bin/snakemake").exists():
        why = "Snakemake's executors for schedulers are not installed: make schedulers"
    if why and os.environ.get("LOADSTONE_REQUIRE_SCHEDULERS") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)


def tables_of(checkout: Checkout) -> dict[str, bytes]:
    """Every table by its name below the tables' folder."""
    tables = checkout.path / "results/tables"
    return {path.relative_to(tables).as_posix(): path.read_bytes() for path in bundle.table_files(tables)}


@pytest.fixture(scope="session")
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    require(missing())
    with Slurm(tmp_path_factory.mktemp("slurm") / "slurm") as slurm:
        yield slurm


@pytest.fixture
def slurm(_slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """The Slurm of this test session, which commands of this test submit jobs to."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, _slurm.environment[name])
    return _slurm


@pytest.fixture(scope="session")
def mixed_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = tmp_path_factory.mktemp("mixed") / "archive"
    mixed.write(archive)
    return archive


@pytest.fixture
def checkout(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checkout]:
    """Makes checkouts with Snakemake's executors; `checkout(archive)` has a copy of that archive."""

    def make(archive: Path | None = None, **sweep: object) -> Checkout:
        made = Checkout(pristine, tmp_path_factory.mktemp("scheduled") / "checkout", **sweep)
        (made.path / ".venv").unlink()
        (made.path / ".venv").symlink_to(SNAKEMAKE)
        if archive:
            mixed.declare(made.path)
            shutil.copytree(archive, made.archive, dirs_exist_ok=True)
        return made

    return make
