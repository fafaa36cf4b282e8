"""The workflow as a module of a Snakefile of one's own: by whatever names, commands stay as safe as they are."""

import fcntl
import json
import shutil
from pathlib import Path

import pytest
from support.checkout import Checkout

MODULE = """
configfile: "config/config.yaml"

module loadstone:
    snakefile: "{snakefile}"
    config: config

use rule * from loadstone{names}
"""


class User(Checkout):
    """A folder with the demo's configuration and a Snakefile that uses the workflow of another folder as a module."""

    def __init__(self, pristine: Path, path: Path, names: str = "", before: str = "", after: str = "") -> None:
        super().__init__(pristine, path)
        for name in ("Snakefile", "rules", "scripts", "envs", "workflow"):
            target = path / name
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        text = MODULE.format(snakefile=pristine / "Snakefile", names=names)
        (path / "Snakefile").write_text(f"{before}{text}{after}")


def runs_and_pages(user: Checkout) -> tuple[int, list[str]]:
    index = json.loads((user.path / "reports/index.json").read_text())
    return len(user.results()), [campaign["app"] for campaign in index["campaigns"]]


@pytest.mark.parametrize("names", ["", " as loadstone_*"])
def test_with_and_without_a_prefix_it_makes_the_demo(pristine: Path, tmp_path: Path, names: str) -> None:
    user = User(pristine, tmp_path / "user", names)
    prefix = "loadstone_" if names else ""
    user.run("--cores", "1", f"{prefix}open")
    # Only analyses, whatever the rule is called: the open campaign stays as it is.
    user.run("--cores", "all", f"{prefix}report")
    assert user.results() == []
    said = user.run("--cores", "all")
    assert runs_and_pages(user) == (4, ["demo"])
    assert "relative to" in said  # the table of verdicts after the last job
    assert user.jobs() == {}


@pytest.mark.parametrize("place", ["before", "after"])
def test_what_a_command_does_before_its_first_job_is_done_for_a_module_too(
    pristine: Path, tmp_path: Path, place: str
) -> None:
    own = {place: '\nonstart:\n    print("the user\'s own")\n\n'}
    user = User(pristine, tmp_path / "user", " as loadstone_*", **own)
    assert "the user's own" in user.run("--cores", "1", "loadstone_open")
    # One command at a time.
    with (user.path / ".snakemake/loadstone.archive.locks").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "the user's own" not in user.run("--cores", "1", "loadstone_open", expect=1)


def test_runs_are_only_collected_by_the_targets_that_say_so(pristine: Path, tmp_path: Path) -> None:
    own = """
rule paper:
    default_target: True
    input:
        "reports/index.html",

rule runs:
    input:
        rules.loadstone_attacks.input,
"""
    user = User(pristine, tmp_path / "user", " as loadstone_*", after=own)
    user.run("--cores", "1", "loadstone_open")
    assert "collect" not in user.jobs()
    assert "`snakemake loadstone_attacks`" in user.run("-n", "runs", expect=1)
    assert user.jobs("loadstone_attacks")["loadstone_collect"] == 4


def test_a_prefix_of_paths_is_refused(pristine: Path, tmp_path: Path) -> None:
    user = User(pristine, tmp_path / "user")
    snakefile = user.path / "Snakefile"
    snakefile.write_text(
        snakefile.read_text().replace("    config: config\n", '    config: config\n    prefix: "load"\n')
    )
    assert "`archive`, `tables` and `reports`" in user.run("-n", expect=1)
