"""The same archive gives the same tables, pages, figures and bundle on another machine, to the byte.

What differs between the two: folders, mtimes and the order in which files were made, time zone, locale, hash seed,
umask, number of cores, and what the processor is allowed to do. `bundling.contents` names what may differ.
"""

import os
import random
import shutil
import subprocess
import zipfile
from pathlib import Path

import duckdb
import pytest
from loadstone.publish import bundle
from loadstone.tables.schema import TABLES, VIEWS
from support import mixed
from support.checkout import copy_project

HERE = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
THERE = {
    "TZ": "America/St_Johns",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "77",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Sandybridge",
}
EXPECTED_TO_DIFFER = {"progress.html"}
KINDS = ("campaigns", "comparisons", "variants")


class Machine:
    """A checkout of its own with the archive, and what its user's environment is like."""

    def __init__(self, folder: Path, cores: int, umask: int, environment: dict[str, str]) -> None:
        self.path = copy_project(folder)
        self.cores, self.umask, self.environment = cores, umask, environment
        mixed.declare(self.path)

    def fill(self, original: Path, seed: int) -> None:
        """The archive, copied in an order and with mtimes of its own."""
        shuffle = random.Random(seed)
        files = sorted(path for path in original.rglob("*") if path.is_file())
        for file in shuffle.sample(files, len(files)):
            target = self.path / "results/archive" / file.relative_to(original)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            instant = shuffle.randrange(1_000_000_000, 1_900_000_000)
            os.utime(target, (instant, instant))

    def run(self, *arguments: str, expect: int = 0) -> str:
        def prepare() -> None:
            os.umask(self.umask)
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.cores])

        command = [self.path / ".venv/bin/snakemake", "--cores", str(self.cores), *arguments]
        environment = {name: text for name, text in os.environ.items() if not name.startswith("LC_")}
        done = subprocess.run(
            command,
            cwd=self.path,
            env=environment | self.environment,
            preexec_fn=prepare,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def made(self) -> dict[str, bytes]:
        """Tables and site by name."""
        tables = self.path / "results/tables"
        found = {path.relative_to(self.path).as_posix(): path for path in bundle.table_files(tables)}
        site = self.path / "reports"
        found |= {path.relative_to(self.path).as_posix(): path for path in site.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if path.name not in EXPECTED_TO_DIFFER}

    @property
    def bundle(self) -> Path:
        return self.path / "results/bundle.zip"


@pytest.fixture(scope="module")
def machines(tmp_path_factory) -> tuple[Machine, Machine]:
    """Both, with tables and site, and the figures of a page of each kind."""
    original = tmp_path_factory.mktemp("original") / "archive"
    mixed.write(original)
    one = Machine(tmp_path_factory.mktemp("one") / "checkout", 1, 0o022, HERE)
    other = Machine(tmp_path_factory.mktemp("other") / "home of an other" / "check out", 2, 0o077, THERE)
    for seed, machine in enumerate((one, other)):
        machine.fill(original, seed)
        machine.run("report")
        pages = [min((machine.path / "reports" / kind).glob("*.html")) for kind in KINDS]
        machine.run(*(f"reports/figures/{kind}/{page.stem}" for kind, page in zip(KINDS, pages, strict=True)))
    return one, other


def test_tables_pages_and_figures_are_the_same_to_the_byte(machines) -> None:
    one, other = (machine.made() for machine in machines)
    assert sorted(one) == sorted(other)
    assert [name for name in one if one[name] != other[name]] == []
    folders = {name.split("/")[2] for name in one if name.startswith("results/tables/")}
    assert {"runs", "requests", "resources", "spans", "cells", "effects", "comparisons", "history"} <= folders
    assert any(name.endswith(".pdf") for name in one) and any(name.endswith(".svg") for name in one)


def test_queries_give_the_same_rows(machines, monkeypatch) -> None:
    answers = []
    for machine in machines:
        monkeypatch.chdir(machine.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
            database.execute(f"SET threads = {machine.cores * 4}")
            found = {name: database.sql(f'SELECT * FROM "{name}"').fetchall() for name in [*TABLES, *VIEWS]}
        # A view is computed when it is asked, by as many threads as there are: its rows have no order.
        answers.append({name: repr(sorted(rows, key=repr) if name in VIEWS else rows) for name, rows in found.items()})
    assert answers[0] == answers[1]


def test_nothing_tells_where_or_when_it_was_made(machines) -> None:
    for machine in machines:
        for name, content in machine.made().items():
            assert str(machine.path).encode() not in content, name


def test_the_bundle_is_the_same_and_the_other_machine_accepts_it(machines) -> None:
    one, other = machines
    for machine in machines:
        machine.run("bundle")
    assert one.bundle.read_bytes() == other.bundle.read_bytes()
    before = one.bundle.read_bytes()
    one.run("bundle")
    assert one.bundle.read_bytes() == before
    said = other.run("verify", "--config", f"verify={one.bundle}")
    assert "all byte-identical" in said and "is valid" in said
    assert not list((other.path / "results/tables").glob(".verified-*"))


def test_tables_that_do_not_come_from_its_raw_results_are_named(machines, tmp_path) -> None:
    """Everything in it fits its own checksums, but one table was put there by hand."""
    one, other = machines
    one.run("bundle")
    forged = other.path / "results/bundle.zip"
    (table,) = (other.path / "results/tables/cells").glob("app_dir=tools/*/*/part.parquet")
    kept = table.read_bytes()
    try:
        (replacement, *_) = (other.path / "results/tables/cells").glob("app_dir=demo/*/*/part.parquet")
        table.write_bytes(replacement.read_bytes())
        _bundle_as_it_is(other, forged)
    finally:
        table.write_bytes(kept)
    said = one.run("verify", "--config", f"verify={forged}", expect=1)
    assert "tables/cells/app_dir=tools/host_dir=here/" in said and "differs" in said and "Traceback" not in said


def _bundle_as_it_is(machine: Machine, path: Path) -> None:
    """The library's own, without the workflow that would make the table again."""
    script = """
import sys
from pathlib import Path
from loadstone import archive
from loadstone.publish import bundle
root = Path("results/archive")
whole = bundle.BundleSelection(tuple(archive.campaigns(root)), (), (), everything=True)
settings = {"analysis": {"margin": "5%", "confidence": 0.95}, "tags": {}}
bundle.write(Path(sys.argv[1]), bundle.gather(whole, root, Path("results/tables"), Path("reports"), settings))
"""
    subprocess.run([machine.path / ".venv/bin/python", "-c", script, path], cwd=machine.path, check=True)


def test_a_bundle_of_one_comparison_holds_its_campaigns_alone(machines) -> None:
    one, other = machines
    one.run("bundle", "--config", f"bundle={{comparisons: [{mixed.COMPARISON}], path: results/part.zip}}")
    part = one.path / "results/part.zip"
    with zipfile.ZipFile(part) as bundle:
        names = [name.removeprefix("loadstone-bundle/data/") for name in bundle.namelist()]
    assert any(name.startswith("archive/demo/") for name in names)
    assert not any("tools" in name for name in names if name.startswith(("archive/", "tables/", "site/campaigns")))
    assert f"site/comparisons/{mixed.COMPARISON}.html" in names and "site/index.html" not in names
    assert f"tables/comparisons/{mixed.COMPARISON}.parquet" in names
    assert "is valid" in other.run("verify", "--config", f"verify={part}")


def test_what_the_archive_does_not_hold_is_not_bundled(machines) -> None:
    said = machines[0].run("bundle", "--config", "bundle={campaigns: [a/b/c]}", expect=1)
    assert "campaign a/b/c" in said and "Traceback" not in said
