"""The gate, where percentiles fall among requests that timed out: what they are at least tells what got slower."""

import json

import numpy as np
import pytest
from analysis.test_gate import TIMES, options
from loadstone import archive, stats
from loadstone.analysis import gate, history
from loadstone.analysis.gate_outcome import INCONCLUSIVE, NO_WORSE, WORSE, GateOutcome
from loadstone.stats.bootstrap import at_least
from scipy.stats import norm
from support import rawfiles
from support.simulated import history_cell
from tables.tabling import Project

LIMIT_NS = 2e9
P90 = {"p90": 0.9}


# --- simulated campaigns ---------------------------------------------------------------------------------------------


def cell(generator, timestamp: str, share: float, runs: int, requests: int = 150) -> dict:
    """Runs around 10 ms with a tail up to the limit, which about so large a share of requests passes."""
    found, median = [], LIMIT_NS / np.exp(norm.isf(share))
    for _ in range(runs):
        latencies = median * np.exp(0.15 * generator.normal() + generator.normal(size=requests))
        late = latencies >= LIMIT_NS
        latencies[late] = LIMIT_NS
        told = np.ones(requests, bool)
        found.append(stats.Sample(latencies.astype(np.int64), told, late, late, ~late, 10.0, LIMIT_NS))
    drawn = stats.replicate(found, P90, *generator.integers(1 << 30, size=2).tolist())
    low, high = stats.interval(drawn, "p90") or (None, None)
    pooled = np.concatenate([each.latencies_ns for each in found])
    figures = {"n_runs": runs, "n_requests": runs * requests, "p90_ns": float(np.quantile(pooled, 0.9))}
    made = history_cell(timestamp) | figures | {"p90_low_ns": low, "p90_high_ns": high}
    name = next(name for name in ("p90", at_least("p90")) if name in drawn.draws)
    row = {"statistic": "p90", "kept_as": name, "value": drawn.values[name], "n_runs": runs}
    row |= {"draws": drawn.draws[name], "within": drawn.within[name]}
    return made if low else made | {history.OPEN_PERCENTILES: {"p90": history.open_percentile(row)}}


def verdicts(before: float, after: float, runs: int, times: int, ratio: float = 1.0) -> list[tuple[str, bool]]:
    """Of campaigns of which such shares of requests time out, and whether the later p90 is among them."""
    generator = np.random.default_rng([runs, round(1000 * before), round(1000 * after)])
    chosen, found = options(statistics=["p90"], ratio=ratio, runs=2), []
    for _ in range(times):
        cells = [cell(generator, at, of, runs) for at, of in zip(TIMES, (before, after), strict=False)]
        (one,) = gate.judge_cells(cells, [], {("demo", "here", TIMES[1])}, chosen)
        found.append((one.verdict, one.at_least))
    return found


@pytest.mark.parametrize(("runs", "share"), [(3, 0.075), (5, 0.09)])
def test_equal_campaigns_near_the_limit_are_seldom_called_worse(runs, share):
    """p90 falls now among requests that timed out, now not. Of 150 times 5 %, 14 come by chance once in 100 times."""
    found = verdicts(share, share, runs, 150)
    assert sum(least for _, least in found) > 5
    assert sum(verdict == WORSE for verdict, _ in found) <= 14


def test_a_percentile_that_moved_among_timeouts_is_worse():
    found = verdicts(0.01, 0.2, 3, 50, ratio=1.1)
    assert all(least for _, least in found)
    assert sum(verdict == WORSE for verdict, _ in found) >= 48
    back = verdicts(0.2, 0.01, 3, 50, ratio=1.1)
    assert sum(verdict == NO_WORSE for verdict, _ in back) >= 48


# --- archives --------------------------------------------------------------------------------------------------------


def campaign(project: Project, timestamp: str, late: bool) -> None:
    """Runs of 400 requests of 10 ms, of which a twentieth may take the two seconds after which it is given up."""
    generator = np.random.default_rng([*timestamp.encode()])
    files = {}
    for run in range(1, 5):
        content = b""
        for seq, latency_ns in enumerate(1e7 * generator.lognormal(0, 0.1, 400)):
            gone = {"code": 0, "error": "request timeout"} if late and seq % 20 == 7 else {}
            sent_ns = rawfiles.START_NS + seq * 10**7
            content += rawfiles.line(seq, 2 * 10**9 if gone else int(latency_ns), sent_ns=sent_ns, **gone)
        files[f"{run}.results.json"] = content
    load = {"testOptions": {"rate": "100", "duration": "4s", "timeout": "2s"}}
    made = rawfiles.write_cell(project.archive, files, at=timestamp, variant="plain", **load)
    (made.campaign.path / archive.COMPLETION).touch()


def judged(project: Project, statistic: str, **declared) -> GateOutcome:
    project.make()
    campaigns = list(archive.campaigns(project.archive))
    return gate.judge(campaigns, campaigns, project.tables, options(statistics=[statistic], **declared))


@pytest.fixture(scope="module")
def moved(tmp_path_factory) -> Project:
    """Four campaigns; p99 of the second and third falls among requests that timed out."""
    project = Project(tmp_path_factory.mktemp("moved"))
    for timestamp, late in zip(TIMES, (False, True, True, False), strict=False):
        campaign(project, timestamp, late)
    return project


def test_a_p99_that_moved_into_timeouts_fails_the_gate(moved, tmp_path):
    found = judged(moved, "p99", candidate=TIMES[1])
    assert (found.outcome, found.fails) == (WORSE, True)
    (one,) = found.findings
    assert (one.at_least, one.value, one.high) == (True, 2e9, None)
    assert 100 < one.low < one.change < 200
    text = "\n".join(found.lines())
    assert "p99: at least 2,000 ms instead of 12" in text
    assert "times (at least 1" in text and "falls among requests that timed out" in text
    found.write(tmp_path)
    (figure,) = json.loads((tmp_path / "gate.json").read_text())["figures"]
    assert figure["at_least"] and figure["high"] is None


def test_where_both_are_among_timeouts_nothing_is_told_and_why(moved):
    found = judged(moved, "p99", candidate=TIMES[2])
    assert found.outcome == INCONCLUSIVE
    assert "too many of its requests timed out, as in the reference" in "\n".join(found.lines())
    assert judged(moved, "p99", candidate=TIMES[2], reference="best of last 2").outcome == WORSE


def test_what_came_back_from_timeouts_is_no_worse(moved):
    found = judged(moved, "p99", candidate=TIMES[3])
    assert found.outcome == NO_WORSE
    (one,) = found.findings
    assert one.reference_at_least and one.low is None and one.high < 1


def test_a_mean_over_timeouts_is_not_known(moved):
    found = judged(moved, "mean", candidate=TIMES[1])
    assert "requests timed out, so it is unknown" in "\n".join(found.lines())
