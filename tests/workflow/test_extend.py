"""`extend`: more runs, variants and rates into a complete campaign; and `only`: some runs of an open one."""

import json
import os
import re
import signal
import time
from contextlib import chdir
from pathlib import Path

import duckdb
import pytest
from support.checkout import Checkout


@pytest.fixture
def checkout(collected: Checkout, tmp_path: Path) -> Checkout:
    """Two runs of two variants at one rate, complete."""
    return collected.copy(tmp_path / "checkout")


def query(checkout: Checkout, text: str) -> list[tuple[object, ...]]:
    with chdir(checkout.path), duckdb.connect("results/loadstone.duckdb", read_only=True) as connection:
        return connection.sql(text).fetchall()


def test_more_runs_a_variant_and_a_rate_are_measured_once_and_what_was_there_stays(checkout: Checkout) -> None:
    before = checkout.contents()
    checkout.configure(sweep={"runs": 4})
    assert "Would open a campaign:" in checkout.run("-n", "open")
    said = checkout.run("--cores", "1", "-n", "extend")
    assert "part 2 of" in said and "4 runs, about" in said and "envoy at 50/s: runs 3 to 4" in said
    assert checkout.contents() == before
    said = checkout.run("--cores", "1", "extend")
    assert "`snakemake --cores all` measures them" in said
    checkout.run("--cores", "all")
    assert len(checkout.results()) == 8
    assert (checkout.campaign / "completion_time.2.txt").exists()
    assert before.items() <= checkout.contents().items()
    assert query(checkout, "SELECT variant, n_runs FROM cells ORDER BY ALL") == [("envoy", 4), ("plain", 4)]
    assert query(checkout, "SELECT part, count(*) FROM runs GROUP BY ALL ORDER BY ALL") == [(1, 4), (2, 4)]
    assert query(checkout, "SELECT n_pairs FROM effects WHERE statistic = 'p50'") == [(4,)]
    (page,) = (checkout.path / "reports/campaigns").glob("*.html")
    assert re.search(r"in 2 parts", page.read_text())

    # A further variant and rate: only they are measured, and the page says that they are of another part.
    checkout.configure(sweep={"variants": ["plain", "envoy", "body-filter"], "rates": [50, 80]})
    checkout.run("--cores", "1", "extend")
    checkout.run("--cores", "all")
    assert len(checkout.results()) == 24
    parts = query(checkout, "SELECT DISTINCT variant, rate, part FROM runs WHERE part = 3 ORDER BY ALL")
    assert parts == [("body-filter", 50.0, 3), ("body-filter", 80.0, 3), ("envoy", 80.0, 3), ("plain", 80.0, 3)]
    caveats = query(checkout, "SELECT cells FROM claims WHERE claim = 'different_parts'")
    assert [[(cell["variant"], cell["rate"]) for cell in cells] for (cells,) in caveats] == [[("body-filter", 50.0)]]
    assert "has everything that is configured" in checkout.run("--cores", "1", "extend")


def test_an_extension_that_is_killed_half_way_is_finished(checkout: Checkout) -> None:
    before = checkout.contents()
    checkout.configure(sweep={"rates": [50, 80]})
    checkout.run("--cores", "1", "extend")
    campaign = checkout.campaign
    for folder in ("80/plain", "80/envoy"):  # as if nothing but the plan had been written
        (campaign / folder / "metadata.json").unlink()
        (campaign / folder).rmdir()
    assert "its extension was interrupted; `snakemake --cores 1 extend` finishes it" in checkout.run(
        "--cores", "all", "attacks", expect=1
    )
    assert "was interrupted; it is finished" in checkout.run("--cores", "1", "extend")
    process = checkout.start("--cores", "all", "attacks")
    deadline = time.monotonic() + 60
    while len(checkout.results()) == 4:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.wait_idle()
    assert not (campaign / "completion_time.2.txt").exists()
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 8 and (campaign / "completion_time.2.txt").exists()
    assert before.items() <= checkout.contents().items()


def test_what_differs_is_refused_unless_declared(checkout: Checkout) -> None:
    record = next(checkout.campaign.glob("50/*/1.run.json"))
    content = json.loads(record.read_text())
    for each in checkout.campaign.glob("50/*/*.run.json"):
        each.write_text(json.dumps(content | {"machine": {"system": "another system", "cpus": 64}}))
    checkout.configure(sweep={"runs": 3})
    said = checkout.run("--cores", "1", "extend", expect=1)
    assert "the machine's system: another system became" in said and "number of CPUs: 64 became" in said
    assert not (checkout.campaign / "extension.1.json").exists()
    checkout.configure(sweep={"extend": "anyway"})
    assert "differs from part 1: the machine's system" in checkout.run("--cores", "1", "extend")
    checkout.run("--cores", "all")
    ((weight, text),) = query(checkout, "SELECT weight, text FROM claims WHERE claim = 'different_parts'")
    assert weight == "serious" and "another system" in str(text)


def test_another_load_can_not_be_an_extension(checkout: Checkout) -> None:
    checkout.configure(sweep={"runs": 3, "duration": "400ms"})
    said = checkout.run("--cores", "1", "extend", expect=1)
    assert "can't be extended" in said and "sweep.duration: '300ms' became '400ms'" in said
    checkout.configure(sweep={"duration": "300ms"})
    for file in checkout.campaign.glob("50/*/metadata.json"):
        content = json.loads(file.read_text())
        del content["generator"]["program"]
        file.write_text(json.dumps(content))
    assert "were sent by `vegeta attack`" in checkout.run("--cores", "1", "extend", expect=1)
    (checkout.campaign / "abandoned.txt").touch()
    assert "was abandoned; delete its abandoned.txt file" in checkout.run("--cores", "1", "extend", expect=1)
    assert not (checkout.campaign / "extension.1.json").exists()


def test_only_some_runs_of_an_open_campaign(pristine: Path, tmp_path: Path) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout", rates=[50, 80])
    checkout.run("--cores", "1", "open")
    said = checkout.run("--cores", "all", "attacks", "--config", "only={variants: [envoy], rates: [80]}")
    assert "stays open: 6 runs that `only` excludes are still planned" in said
    assert [file.relative_to(checkout.campaign).parts[:2] for file in checkout.results()] == [("80", "envoy")] * 2
    assert not (checkout.campaign / "completion_time.txt").exists()
    said = checkout.run("--cores", "all", "attacks", "--config", "only={variants: [nobody]}", expect=1)
    assert "only.variants: 'nobody' is not in sweep.variants" in said
    checkout.run("--cores", "all", "attacks")
    assert len(checkout.results()) == 8


def test_the_archive_verifies_before_and_after(checkout: Checkout) -> None:
    checkout.run("--cores", "1", "verify")
    checkout.configure(sweep={"rates": [50, 80], "runs": 1})
    checkout.run("--cores", "1", "extend")
    checkout.run("--cores", "1", "verify")
