"""One generator at 1,000 requests/s and four at 250 each are the same load: as many requests, equivalent latency.

Latency is judged on request, by the project's own verdicts and margin, over pairs of runs against the demo's proxy that
follow each other, on a machine that nobody else uses: LOADSTONE_PAIRS=64 LOADSTONE_SECONDS=3. Both hold four
connections, which they use in turn; or one for each request. Without five processors the four share processes.
"""

import json
import os
from math import nan
from pathlib import Path

import pytest
from loadstone import archive
from loadstone.analysis.scope import Settings
from loadstone.archive import METADATA, Cell, plan
from loadstone.collect import sweep
from loadstone.collect.run import collect_run
from support.checkout import PROJECT
from tables.tabling import Project

RATE, SECONDS = 1000, int(os.environ.get("LOADSTONE_SECONDS", "1"))
JUDGED = "LOADSTONE_PAIRS" in os.environ
RUNS = int(os.environ.get("LOADSTONE_PAIRS", "2"))
MARGIN = float(os.environ.get("LOADSTONE_MARGIN", "0.05"))
CONNECTIONS = 4
FEWEST = 5  # pairs that must be left for a judgement


def process(name: str, port: int) -> dict[str, object]:
    command = ["envoy", "--config-path", str(PROJECT / f"config/demo/{name}.yaml"), "--concurrency", "1"]
    return {
        "command": [*command, "--disable-hot-restart", "--log-level", "warning"],
        "port": port,
        "ready": f"http://127.0.0.1:{port}/ready",
    }


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["kept", "per request"])
def test_four_generators_are_one(headers: dict[str, str], tmp_path: Path) -> None:
    proxied = {
        "url": "http://127.0.0.1:18081/",
        "headers": headers,
        "processes": ["app", "envoy"],
        "expect": {"status": 200, "headers": {"x-variant": "envoy"}},
    }
    target = {
        "kind": "local",
        "processes": {"app": process("app", 18080), "envoy": process("envoy", 18081)},
        "variants": {"one": proxied, "four": proxied},
    }
    planned = {"app": "demo", "variants": ["one", "four"], "rates": [RATE], "runs": RUNS, "duration": f"{SECONDS}s"}
    if not headers:
        planned["connections"] = CONNECTIONS
    planned["warmup"] = {"duration": "300ms", "min_rate": 200, "max_rate": 200}
    project = Project(tmp_path)
    config = {"archive": str(project.archive), "host": "here", "sweep": planned, "target": target}
    campaign = sweep.open_sweep(config, {}, lambda _: None)
    # One campaign of both, so that they take turns: how many generators there are is said of each cell.
    for variant, count in (("one", 1), ("four", 4)):
        path = Cell(campaign, str(RATE), variant).path / METADATA
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | {"generator": content["generator"] | {"count": count}}))
    for run in plan.missing(archive.scan_campaign(campaign)):
        collect_run(run.cell, run.run, target, host="here", logs=tmp_path / "logs", log=lambda _: None)

    project.convert()
    settings = Settings(margin=MARGIN, order=("one", "four"))
    project.analyse(settings=settings)
    # Where others kept this machine from sending on time the load was another: both runs of such a pair are left out,
    # for to leave out one alone would choose.
    late = [row["run"] for row in project.rows("SELECT DISTINCT run FROM sending WHERE limited ORDER BY run")]
    tags = [{"tag": "GENERATOR_LIMITED", "run": str(run)} for run in late]
    project.analyse(tags, ["GENERATOR_LIMITED"], settings=settings)

    counts = project.rows("SELECT variant, run, requests, complete, problems FROM runs ORDER BY ALL")
    assert [(row["variant"], row["run"]) for row in counts] == [
        (variant, run) for variant in ("four", "one") for run in range(1, RUNS + 1)
    ]
    assert all(row["requests"] == RATE * SECONDS and row["complete"] and not row["problems"] for row in counts)
    shared = project.rows("SELECT requests FROM senders WHERE variant = 'four'")
    assert [row["requests"] for row in shared] == [RATE * SECONDS // 4] * 4 * RUNS
    if not JUDGED:
        return
    effects = {
        row["statistic"]: row
        for row in project.rows("SELECT * FROM effects WHERE variant = 'four' AND baseline = 'one'")
    }
    told = {
        name: (row["verdict"], [round(row[each] or nan, 3) for each in ("ratio", "ratio_low", "ratio_high")])
        for name, row in effects.items()
    }
    said = f"{told}; {len(late)} of {RUNS} pairs were sent late"
    print(said)
    verdicts = {name: row["verdict"] for name, row in effects.items()}
    if RUNS - len(late) < FEWEST or verdicts["p50"] == "inconclusive":
        pytest.skip(f"others keep this machine too busy to tell: {said}")
    assert verdicts["p50"] == "equivalent", said
    assert not set(verdicts.values()) & {"slower", "faster", "more", "fewer"}, said
