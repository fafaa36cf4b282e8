"""An archive with something of everything: several campaigns, tools, streams, failures, samples and traces."""

import json
import shutil
from pathlib import Path

import numpy as np
import yaml
from loadstone.archive import Campaign, Cell

from support import foreign, rawfiles, samples, spans
from support.rawfiles import compress

CAMPAIGNS = ("2026-11-20T22:00:00+01:00", "2026-11-21T23:30:00+01:00")
VARIANTS = ("plain", "envoy", "größe {0}")
RATES = ("100", "300")
RUNS = 4
COMPARISON = "both-evenings"


def write(root: Path) -> None:
    """Write it below `root`, always the same to the byte."""
    for number, at in enumerate(CAMPAIGNS):
        for rate in RATES:
            for position, variant in enumerate(VARIANTS):
                _cell(root, at, rate, variant, seed=(number, position, int(rate)))
        (root / "demo/here" / at / "completion_time.txt").write_text(f"{at}\n")
    _others(root)
    calls = [spans.span("b", 1_700_000_000_010_000, 50_000, "a", service="back"), _call("c"), _call("d")]
    traces = [spans.trace("t1", [spans.span("a", 1_700_000_000_000_000, 100_000), *calls])]
    folder = root / "demo/here" / CAMPAIGNS[0] / "_trace_dumps"
    folder.mkdir()
    (folder / "traces-1700000000000.json.zst").write_bytes(compress(spans.dump(*traces)))


def _call(name: str) -> dict:
    return spans.span(name, 1_700_000_000_020_000, 9_000, "b", service="store")


def _cell(root: Path, at: str, rate: str, variant: str, seed: tuple[int, ...]) -> Cell:
    files: dict[str, bytes] = {}
    for run in range(1, RUNS + 1):
        random = np.random.default_rng([*seed, run])
        latencies = (np.exp(random.normal(14 + seed[1] / 5, 0.4, 2 * int(rate)))).astype(np.int64)
        lines = rawfiles.lines(latencies.tolist(), float(rate)).splitlines(keepends=True)
        for failed in random.choice(len(lines), 4, replace=False).tolist():
            fields = {"code": 503, "error": "503 Service Unavailable"} if failed % 2 else {"code": 0, "error": "EOF"}
            sent_ns = rawfiles.START_NS + round(failed * 1e9 / int(rate))
            lines[failed] = rawfiles.line(failed, int(latencies[failed]), sent_ns=sent_ns, **fields)
        files[f"{run}.results.json.zst"] = compress(b"".join(lines))
        files[f"{run}.resources.csv.zst"] = compress(_resources(random))
        codes = {"200": len(lines) - 4, "503": 2, "0": 2}
        report = {
            "latencies": {"mean": latencies.mean()},
            "requests": len(lines),
            "success": 0.9,
            "status_codes": codes,
        }
        files[f"{run}.summary.json"] = json.dumps(report).encode()
    files["4.results.json.zst"] = files["4.results.json.zst"][:-30]  # was cut short
    files["5.failure.1.json"] = json.dumps({"phase": "ready", "error": "not ready", "failed": at}).encode()
    changes = {
        "testOptions": {"duration": "2s", "rate": rate},
        "runs": RUNS + 1,
        "order": {"kind": "blocks", "positions": list(range(1, RUNS + 2))},
        "labels": {"pods": "10", "zone": "east"},
        "seed": 7,
    }
    return rawfiles.write_cell(root, files, rate=rate, variant=variant, at=at, **changes)


def _resources(random: np.random.Generator) -> bytes:
    """Three rounds of samples: pods, the generator and its machine, with figures that no binary fraction holds."""
    rows = ["sampled_at,scope,name,cpu_millicores,memory_mib,asked_at"]
    for second in range(3):
        for scope, name in (*(("pod", f"demo/web-{n}") for n in range(7)), ("process", "generator"), ("node", "n")):
            figures = f"{random.normal(100, 9):.3f},{random.normal(50, 3):.3f}"
            rows.append(f"2026-11-21T11:00:0{second}.1Z,{scope},{name},{figures},2026-11-21T11:00:0{second}Z")
    return "\n".join(rows).encode() + b"\n"


def _others(root: Path) -> None:
    """Files of other tools, as an import lays them down."""
    k6 = {"1.k6.json.zst": compress(samples.content("open.k6.json"))}
    _tool(root, "k6", k6 | {"1.k6.summary.json": samples.content("open.k6.summary.json")})
    _tool(root, "artillery", {"1.artillery.json": samples.content("one.artillery.json")})
    _tool(root, "hdr", {"1.hdr.csv": foreign.HDR.encode()})


def _tool(root: Path, tool: str, files: dict[str, bytes]) -> None:
    cell = Cell(Campaign(root, "tools", "here", CAMPAIGNS[0]), "10", tool)
    shutil.rmtree(cell.path, ignore_errors=True)
    rawfiles.write_cell(
        root, files, rate="10", variant=tool, app="tools", at=CAMPAIGNS[0], testMode=tool, generator={"name": tool}
    )


def declare(checkout: Path) -> None:
    """A comparison over both campaigns and a catalogue that leaves a run out."""
    comparison = {"id": COMPARISON, "title": "Both", "app": "demo", "host": "here", "timestamps": list(CAMPAIGNS)}
    (checkout / "config/comparisons.yaml").write_text(yaml.safe_dump([comparison], sort_keys=False))
