"""Archive and tables kept in a bucket, through the workflow: the machine that collected, and another that computes."""

import hashlib
import os
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from conftest import PROJECT
from loadstone.publish.bundle import table_files
from support.buckets import Bucket, contents
from support.checkout import Checkout
from support.rawfiles import compress, lines, write_cell
from support.relay import relayed
from support.storage import SECRET

CAMPAIGNS = ("2026-11-20T22:00:00+01:00", "2026-11-21T23:30:00+01:00")


def write_archive(root: Path) -> None:
    for night, at in enumerate(CAMPAIGNS):
        for shift, variant in enumerate(("plain", "größe {0}")):
            files = {}
            for run in (1, 2, 3):
                chosen = np.random.default_rng([night, shift, run]).normal(1e6 + 1e5 * shift, 1e5, 100)
                content = compress(lines(chosen.astype(int).tolist(), 100.0))
                files[f"{run}.results.json.zst"] = content
                sums = f"{hashlib.sha256(content).hexdigest()}  {run}.results.json.zst\n"
                files[f"{run}.sha256"] = sums.encode()
            # The last run of the second night was not collected, on the machine whose name both checkouts have.
            if night and shift:
                del files["3.results.json.zst"], files["3.sha256"]
            order = {"kind": "blocks", "positions": [1, 2, 3]}
            options = {"testOptions": {"duration": "1s", "rate": "100"}, "runs": 3, "order": order}
            write_cell(root, files, variant=variant, at=at, **options)
    (root / "demo/here" / CAMPAIGNS[0] / "completion_time.txt").write_text("2026-11-20T23:00:00+01:00\n")


@pytest.fixture(scope="module")
def machines(storage, pristine, tmp_path_factory):
    """One that has an archive and has pushed it, another that has nothing; and the bucket."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in storage.environment.items():
            patch.setenv(name, value)
        folder = tmp_path_factory.mktemp("machines")
        first, second = (Checkout(pristine, folder / name) for name in ("first", "second"))
        bucket = Bucket(storage, f"workflow-{os.getpid()}")
        for machine in (first, second):
            machine.replace(host="here", storage=bucket.declared())
        write_archive(first.archive)
        first.said = first.run("--cores", "all", "push")
        yield first, second, bucket


def tables_of(machine: Checkout) -> dict[str, bytes]:
    tables = machine.path / "results/tables"
    return {path.relative_to(tables).as_posix(): path.read_bytes() for path in table_files(tables)}


def test_the_other_machine_makes_the_same_tables(machines) -> None:
    first, second, bucket = machines
    assert "files (" in first.said and "transferred" in first.said
    here = contents(first.archive)
    output = second.run("--cores", "1", "-n", "pull")
    assert f"transferred: {len(here)} files" in output and not list(second.archive.glob("demo"))
    assert "command of its own" in second.run("--cores", "1", "pull", "all", expect=1)
    said = [first.said, output, second.run("--cores", "1", "pull"), second.run("--cores", "all", "tables")]
    found = contents(second.archive)
    assert found == here  # the run that is missing was not collected
    assert tables_of(second) == tables_of(first)
    there = {name: content for name, content in bucket.objects().items() if name.startswith("tables/")}
    assert there == {f"tables/{name}": content for name, content in tables_of(first).items()}
    assert "nothing was transferred" in second.run("--cores", "1", "push")
    assert "transferred: 0 files" in first.run("--cores", "1", "-n", "push")
    for machine in (first, second):
        said += [path.read_text() for path in (machine.path / "logs").rglob("*.log")]
        said += [path.read_text() for path in (machine.path / ".snakemake/log").iterdir()]
    assert not any(SECRET in text for text in said)


def test_tables_are_asked_in_place_as_the_readme_says(machines) -> None:
    first, _, bucket = machines
    readme = (PROJECT / "docs/buckets.md").read_text()
    (snippet,) = re.findall(r"```python\n(import duckdb\nfrom pyarrow .*?)```", readme, re.DOTALL)
    assert snippet.count("\n") <= 10
    query = re.search(r'"""(.*?)"""', snippet, re.DOTALL)[1].replace("2026-11-20T22:00:00+01:00", CAMPAIGNS[1])
    with relayed(bucket.endpoint) as relay:
        mine = snippet.replace("https://storage.example", relay.endpoint)
        prepared = mine.replace("my-results/mesh", f"{bucket.name}/some/where").partition("duckdb.sql")[0]
        names: dict = {}
        exec(prepared, names)
        relay.forget()
        cells = names["cells"]
        found = duckdb.sql(query).fetchall()
        asked = {path for method, path in relay.asked if method == "GET"}
    assert cells is not None
    assert asked and all("2026-11-21T23" in path for path in asked), asked
    local = f"read_parquet('{first.path}/results/tables/cells/*/*/*/*.parquet')"
    assert found == duckdb.sql(query.replace("FROM cells", f"FROM {local}")).fetchall()
    assert len(found) == 2
    loaded = duckdb.sql("SELECT extension_name FROM duckdb_extensions() WHERE loaded").fetchall()
    assert ("httpfs",) not in loaded
