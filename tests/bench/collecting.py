"""What collecting costs besides the attack itself, and how faithfully an attack keeps its rate.

The peer is the clock: a run's warm-up, attack and the readiness of its target (from its own record), against the time
that passes from one run's start to the next in the same invocation.
"""

import json
import statistics
import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from loadstone.archive import Campaign
from loadstone.tables.database import connect
from support.checkout import Checkout, copy_project

RUNS = 6


def measure() -> dict[str, float]:
    """Collect and analyse a small sweep at 1,000 requests/s; figures by name, times in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        pristine = copy_project(Path(folder) / "pristine")
        sweep = {"variants": ["plain"], "rates": [1000], "runs": RUNS, "duration": "2s"}
        checkout = Checkout(pristine, Path(folder) / "checkout", **sweep)
        checkout.run("--cores", "1", "open")
        checkout.run("--cores", "all")
        records = [json.loads(file.read_text()) for file in checkout.campaign.rglob("*.run.json")]
        overheads = [following - own for own, following in _own_and_next(records)]
        tables = checkout.path / "results/tables"
        app, host, timestamp = checkout.campaign.parts[-3:]
        with connect(tables, [Campaign(checkout.archive, app, host, timestamp)]) as database:
            requests, lags_ns = zip(*database.sql("SELECT requests, send_lag_p99_ns FROM runs").fetchall(), strict=True)
    return {
        "overhead_s": statistics.median(overheads),
        "requests_per_planned": statistics.median(requests) / 2000,
        "send_lag_p99_ms": statistics.median(lags_ns) / 1e6,
    }


def _own_and_next(records: list[dict]) -> list[tuple[float, float]]:
    """For each run but the last: seconds of readiness, warm-up and attack, and seconds until the next run started."""
    records = sorted(records, key=lambda record: record["position"])
    starts = [datetime.fromisoformat(record["started"]) for record in records]
    found = []
    for record, (start, following) in zip(records, pairwise(starts), strict=False):
        ready = datetime.fromisoformat(record["ready"]) - start
        attacks = sum(phase["duration_s"] for phase in record["phases"])
        found.append((ready.total_seconds() + attacks, (following - start).total_seconds()))
    return found
