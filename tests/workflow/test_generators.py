"""Sweeps with several load generators: one archive, told apart in every table, each as its own tool counted."""

import io
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
import zstandard
from support.checkout import Checkout
from support.generators import require

SHAPE = [
    {"name": "ramp", "rate": 0, "to": "100%", "duration": "1s"},
    {"name": "steady", "rate": "100%", "duration": "2s"},
]
SWEEPS: dict[str, dict[str, Any]] = {
    "vegeta": {"generator": "vegeta", "rates": [50], "shape": SHAPE},
    "k6": {"generator": "k6", "rates": [50], "shape": SHAPE},
    "artillery": {"generator": "artillery", "rates": [50], "shape": SHAPE},
    "users": {"generator": "k6", "users": [3], "iterations": 20},
}


def declare(checkout: Checkout, **sweep: Any) -> None:
    file = checkout.path / "config/config.yaml"
    config = yaml.safe_load(file.read_text())
    config["sweep"] = {"app": "demo", "variants": ["plain", "envoy"], "runs": 1, "timeout": "5s"} | sweep
    file.write_text(yaml.safe_dump(config, sort_keys=False))


@pytest.mark.slow
def test_three_tools_in_one_archive(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("k6")
    require("artillery")
    checkout = Checkout(pristine, tmp_path / "checkout")
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for sweep in SWEEPS.values():
        before = set(checkout.archive.glob("*/*/*"))
        declare(checkout, **sweep)
        checkout.run("--cores", "1", "open")
        checkout.run("--cores", "all", "attacks")
        (campaign,) = set(checkout.archive.glob("*/*/*")) - before
        for variant in ("plain", "envoy"):
            told[campaign.name, variant] = as_told(next(campaign.glob(f"*/{variant}")))
        time.sleep(1)  # campaigns are named by the second
    checkout.run("--cores", "all", "report")
    monkeypatch.chdir(checkout.path)  # views name their files from there
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as tables:
        answer = tables.sql("SELECT * FROM runs ORDER BY timestamp, variant")
        found = [dict(zip(answer.columns, run, strict=True)) for run in answer.fetchall()]
        summaries = tables.sql("SELECT timestamp, variant, requests, min_ns, max_ns FROM summaries").fetchall()
        counts = tables.sql("SELECT timestamp, variant, phase, count(*) FROM requests GROUP BY ALL").fetchall()
        problems = tables.sql("SELECT * FROM problems").fetchall()
    assert problems == []
    assert [(run["generator"], run["load_model"], run["evidence"], run["excluded"]) for run in found[::2]] == [
        ("vegeta", "open", "raw", False),
        ("k6", "open", "raw", False),
        ("artillery", "open", "summary", False),
        ("k6", "closed", "raw", False),
    ]
    assert {(run["requests"], run["expected_requests"], run["complete"]) for run in found[:6]} == {(100, 100, True)}
    assert {(run["requests"], run["expected_requests"], run["users"]) for run in found[6:]} == {(60, 60, 3)}
    assert len(summaries) == 8
    for timestamp, variant, requests, min_ns, max_ns in summaries:
        own = told[timestamp, variant]
        assert requests == own["requests"]
        assert (min_ns, max_ns) == pytest.approx((own["min_ns"], own["max_ns"]), rel=1e-9)
    phases = {(phase, count) for *_, phase, count in counts}
    assert phases == {("ramp", 25), ("test", 100), ("test", 60)}
    pages = [page.read_text() for page in (checkout.path / "reports").rglob("*.html")]
    assert any("k6" in page for page in pages) and any("artillery" in page for page in pages)


def as_told(cell: Path) -> dict[str, Any]:
    """What the tool itself says of its run: requests, fastest and slowest."""
    if (report := cell / "1.artillery.json").exists():
        aggregate = json.loads(report.read_text())["aggregate"]
        times = aggregate["summaries"]["http.response_time"]
        scale, count = 1e6, aggregate["counters"]["http.requests"]
    elif (report := cell / "1.k6.summary.json").exists():
        metrics = json.loads(report.read_text())["metrics"]
        times, scale, count = metrics["http_req_duration"], 1e6, metrics["http_reqs"]["count"]
    else:
        summary = json.loads((cell / "1.summary.json").read_text())
        times, scale, count = summary["latencies"], 1, summary["requests"]
    return {"requests": count, "min_ns": times["min"] * scale, "max_ns": times["max"] * scale}


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["k6", "artillery"])
def test_a_sweep_that_is_killed_leaves_nothing_and_goes_on(pristine: Path, tmp_path: Path, generator: str) -> None:
    require(generator)
    checkout = Checkout(pristine, tmp_path / "checkout")
    stages = [{"name": "steady", "rate": "100%", "duration": "6s"}]
    declare(checkout, generator=generator, rates=[50], shape=stages, variants=["plain"])
    checkout.run("--cores", "1", "open")
    planned = checkout.contents()
    process = checkout.start("--cores", "all", "attacks")
    while not any(generator in " ".join(command[:3]) for command in checkout.command_lines()):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.wait_idle(30)
    assert {name: digest for name, digest in checkout.contents().items() if "/." not in name} == planned
    checkout.run("--cores", "all", "attacks")
    kept = {name.rpartition("/")[2] for name in checkout.contents()}
    assert f"1.{generator}.json" in {name.removesuffix(".zst") for name in kept}
    assert not [name for name in checkout.contents() if "/." in name]
    if generator == "k6":
        raw = next(checkout.archive.rglob("1.k6.json.zst"))
        lines = io.TextIOWrapper(zstandard.open(raw, "rb"), "utf-8")
        assert sum('"metric":"http_reqs","type":"Point"' in line.replace(" ", "") for line in lines) == 300
