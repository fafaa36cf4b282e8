"""What the tests of documents share."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pytest
from importing.conftest import attack, imports
from loadstone import archive
from loadstone.analysis import history
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.tables.database import connect
from support.rawfiles import START_NS, TIMESTAMP, compress, line, write_cell
from tables.tabling import Project

__all__ = ["attack", "database", "documented", "imports"]

RUNS, EXCLUDED = (1, 2, 3, 4), 4
SECONDS, LIMIT_NS = 10, 30 * 10**9
SETTINGS = Settings(order=("plain", "istio"), over={"plain": (), "istio": ("plain",)})
NO_ANSWER = {"code": 0, "error": 'Get "http://x/": context deadline exceeded (Client.Timeout exceeded)'}


@dataclass
class Documented:
    """A small campaign, and the tables over it: `measured` has, by variant and rate, the latencies of each valid run.

    Requests that timed out took the time limit there; `reported` are the means that the load generator reported.
    """

    connection: duckdb.DuckDBPyConnection
    measured: dict[tuple[str, float], list[np.ndarray]] = field(default_factory=dict)
    reported: dict[tuple[str, float], list[float]] = field(default_factory=dict)

    def pooled(self, variant: str, rate: float) -> np.ndarray:
        return np.concatenate(self.measured[variant, rate])


def _lines(latencies_ns: np.ndarray, timed_out: np.ndarray, rate: int, start_ns: int) -> Iterator[bytes]:
    """What vegeta wrote: hardly any time for requests that timed out."""
    for seq, (latency_ns, failed) in enumerate(zip(latencies_ns.tolist(), timed_out.tolist(), strict=True)):
        sent_ns = start_ns + round(seq * 1e9 / rate)
        yield line(seq, 1000 if failed else latency_ns, sent_ns=sent_ns, **(NO_ANSWER if failed else {}))


@pytest.fixture(scope="session")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Documented:
    """Two variants at two rates, four runs each: with slow warm-ups, the last run excluded, one cell with timeouts."""
    project, random = Project(tmp_path_factory.mktemp("documented")), np.random.default_rng(5)
    found = Documented(duckdb.connect())
    for variant, added_ns in {"plain": 0, "istio": 400_000}.items():
        for rate in (50, 100):
            files = {}
            for run in RUNS:
                count = SECONDS * rate
                slower_ns = 10 * added_ns if run == EXCLUDED else added_ns
                latencies_ns = (1e6 * random.lognormal(0, 0.3, count)).astype(np.int64) + slower_ns
                timed_out = random.random(count) < (0.03 if (variant, rate) == ("istio", 100) else 0)
                written_ns = np.where(timed_out, 1000, latencies_ns)
                report = {
                    "requests": count,
                    "latencies": {"mean": int(written_ns.mean())},
                    "success": 1 - timed_out.mean(),
                }
                cold = _lines(50 * latencies_ns[:rate], np.zeros(rate, bool), rate, START_NS - 2 * 10**9)
                files[f"{run}.results.json.zst"] = compress(b"".join(_lines(latencies_ns, timed_out, rate, START_NS)))
                files[f"{run}.warmups.json.zst"] = compress(b"".join(cold))
                files[f"{run}.summary.json"] = json.dumps(report).encode()
                if run != EXCLUDED:
                    took_ns = np.where(timed_out, LIMIT_NS, latencies_ns)
                    found.measured.setdefault((variant, rate), []).append(took_ns)
                    found.reported.setdefault((variant, rate), []).append(report["latencies"]["mean"])
            options = {"rate": str(rate), "duration": f"{SECONDS}s", "timeout": "30s"}
            write_cell(project.archive, files, rate=str(rate), variant=variant, testOptions=options, runs=len(RUNS))
    project.convert()
    project.analyse([{"run": EXCLUDED, "tag": "odd", "reason": "a test"}], ["odd"], settings=SETTINGS)
    campaigns = list(archive.campaigns(project.archive))
    compare(Comparison("one", "One", "demo", ("here",), (TIMESTAMP,)), campaigns, project.tables, SETTINGS)
    history.write(campaigns, project.tables, {})
    found.connection = connect(project.tables)
    return found


@pytest.fixture(scope="session")
def database(documented: Documented) -> duckdb.DuckDBPyConnection:
    """Views of every table over that campaign."""
    return documented.connection
