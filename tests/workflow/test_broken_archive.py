"""An archive in which everything is broken that can be: the workflow ends well, and each thing is named somewhere."""

import json
import os
import shutil
import subprocess

import duckdb
import pytest
from support import shapes
from support.checkout import Checkout
from support.rawfiles import compress, lines

SOUND, BROKEN, LOCKED = "2025-01-02T11:48-05:00", "2025-01-09T23:51:34-05:00", "2025-02-25T11:08:56-05:00"
STRAYS = 10_000


def run(number: int) -> bytes:
    return compress(lines([2_000_000 + number] * 100, rate=10.0))


def write(root, timestamp: str, variant: str, rate: str = "10") -> shapes.Cell:
    cell = shapes.cell(root, timestamp, rate, variant, app="bookinfo")
    metadata = shapes.version_4(timestamp, "shiver", rate, variant)
    shapes.write(cell, metadata, {f"{number}.results.json.zst": run(number) for number in (1, 2)})
    return cell


def snakemake(checkout: Checkout, *arguments: str) -> str:
    """Without the power of root to read what nobody may."""
    plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*plain, checkout.path / ".venv/bin/snakemake", *arguments]
    done = subprocess.run(
        command, cwd=checkout.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("setpriv") is None and os.geteuid() == 0, reason="there is no setpriv to act as a user"
)
def test_nothing_crashes_and_everything_is_named(pristine, tmp_path, monkeypatch) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout")
    root = checkout.archive
    write(root, SOUND, "plain")
    lying = write(root, BROKEN, "plain")
    content = json.loads((lying.path / "metadata.json").read_text())
    content["workloadInfo"]["hostname"] = "elsewhere"
    (lying.path / "metadata.json").write_text(json.dumps(content))
    for folder in ("envoy", "istio"):  # these mean one variant
        write(root, BROKEN, folder)
    campaign, host, app = lying.campaign.path, lying.campaign.path.parent, lying.campaign.path.parents[1]
    (lying.path / "3.results.json.zst").symlink_to("nowhere")
    (campaign / "up").symlink_to("../..", target_is_directory=True)
    (host / "again").symlink_to(BROKEN, target_is_directory=True)
    (app / "loop").symlink_to(".", target_is_directory=True)
    (root / "circle").symlink_to("circle")
    os.mkfifo(campaign / "10/pipe")
    for number in range(STRAYS):
        (lying.path / f"stray {number}").touch()
    for number in range(100):
        (root / f"astray {number}").touch()
    write(root, LOCKED, "plain")
    locked = [
        write(root, BROKEN, "prose-filter", "20").path.parent,
        write(root, BROKEN, "prose-filter", "30").path,
        root / "bookinfo/shiver" / LOCKED,
        app / "nobody",
    ]
    locked[3].mkdir()
    for folder in locked:
        folder.chmod(0)
    output = snakemake(checkout, "--cores", "all", "report")
    assert "Nothing to be done" in snakemake(checkout, "-n", "report")
    for folder in locked:
        folder.chmod(0o755)

    monkeypatch.chdir(checkout.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        named = {
            (source.removeprefix(f"bookinfo/shiver/{BROKEN}/") if source else "", problem)
            for source, problem in database.sql("SELECT source, problem FROM problems").fetchall()
        }
        query = "SELECT timestamp, variant, count(*) FROM runs WHERE NOT excluded GROUP BY ALL ORDER BY ALL"
        assert database.sql(query).fetchall() == [(SOUND, "plain", 2), (BROKEN, "istio", 4)]
        copied = "SELECT variant, run FROM suggestions WHERE kind = 'copied run' AND timestamp = $1 ORDER BY ALL"
        assert database.execute(copied, [BROKEN]).fetchall() == [("istio", 1), ("istio", 2), ("plain", 1), ("plain", 2)]
        (reasons,) = zip(
            *database.sql("SELECT DISTINCT exclusion_reason FROM runs WHERE excluded").fetchall(), strict=True
        )
    assert {(f"10/plain/stray {number}", "is not a file of a run") for number in range(STRAYS)} <= named
    assert {
        ("10/plain/3.results.json.zst", "cannot be read: No such file or directory"),
        ("10/plain/metadata.json", "gives the hostname as 'elsewhere', but the folder name says 'shiver'"),
        ("", "the folders 'envoy' and 'istio' are one variant; their runs are combined"),
        ("up", "is neither a rate nor a known file"),
        ("10/pipe", "is not a variant's folder"),
        ("20", "cannot be read: Permission denied"),
        ("30/prose-filter", "cannot be read: Permission denied"),
        (f"bookinfo/shiver/{LOCKED}", "cannot be read: Permission denied"),
    } <= named
    assert any(f"timestamp as '{BROKEN}', but the folder name says 'again'" in reason for reason in reasons)
    assert "more belong to no campaign: logs/report/outside.txt" in output
    outside = (checkout.path / "logs/report/outside.txt").read_text()
    for text in ("bookinfo/nobody cannot be read", "bookinfo/loop is not a host's", "circle is not an app's"):
        assert text in outside
    assert outside.count("astray") == 100


@pytest.mark.slow
@pytest.mark.long
def test_a_removed_campaign_is_forgotten_without_snakemakes_records_too(pristine, tmp_path, monkeypatch) -> None:
    checkout = Checkout(pristine, tmp_path / "checkout")
    gone = write(checkout.archive, SOUND, "plain").campaign.path
    write(checkout.archive, BROKEN, "plain")
    checkout.run("--cores", "all", "report")
    shutil.rmtree(gone)
    shutil.rmtree(checkout.path / ".snakemake")
    assert checkout.jobs("report").keys() == {"database", "index", "report"}
    checkout.run("--cores", "all", "report")
    monkeypatch.chdir(checkout.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        for table in ("runs", "requests", "cells"):
            assert database.sql(f"SELECT DISTINCT timestamp FROM {table}").fetchall() == [(BROKEN,)]
    assert len(list((checkout.path / "reports/campaigns").glob("*.html"))) == 1
    assert checkout.jobs("report") == {}
