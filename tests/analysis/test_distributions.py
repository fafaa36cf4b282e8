"""Tables run_figures, time_bins and percentile_curves: recomputed with numpy from the raw requests."""

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis import distributions, run_requests
from loadstone.analysis.comparison import compare
from loadstone.config.comparisons import Comparison
from support.rawfiles import START_NS, TIMESTAMP, compress, line, write_cell

RNG = np.random.default_rng(5)
RATE, N, SECONDS = 400, 4000, 10
LATENCIES = {run: (RNG.lognormal(0, 0.4, N) * (1 + run) * 1e6).astype(np.int64) for run in (1, 2, 3)}
AT_S = np.arange(N) / RATE


def content(latencies_ns, timed_out=()) -> bytes:
    """A run; requests in `timed_out` have no answer, and as latency what the tool writes then."""
    failed = {"code": 0, "error": "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"}
    written = []
    for seq, (latency_ns, at_s) in enumerate(zip(latencies_ns, AT_S, strict=True)):
        told = (0, failed) if seq in timed_out else (int(latency_ns), {})
        written.append(line(seq, told[0], sent_ns=START_NS + round(at_s * 1e9), **told[1]))
    return compress(b"".join(written))


def write(project, runs, timed_out=(), **fields):
    files = {f"{run}.results.json.zst": content(LATENCIES[run], timed_out) for run in runs}
    options = {"rate": str(RATE), "duration": f"{SECONDS}s", "timeout": "5s"}
    return write_cell(project.archive, files, rate=str(RATE), **{"testOptions": options} | fields)


def test_a_bin_has_the_percentiles_of_the_pooled_requests_of_runs_that_count(project) -> None:
    write(project, (1, 2, 3))
    project.convert()
    project.analyse([{"run": 3, "tag": "odd", "reason": "a test"}], ["odd"])
    assert project.row("SELECT count(*) FILTER (WHERE excluded) AS n FROM runs") == {"n": 1}
    rows = project.rows("SELECT * FROM time_bins ORDER BY from_s")
    assert [row["from_s"] for row in rows] == pytest.approx(np.arange(0, SECONDS, 0.5))
    assert rows[-1]["to_s"] == SECONDS and {row["comparison"] for row in rows} == {None}
    for row in rows:
        inside = (row["from_s"] <= AT_S) & (row["to_s"] > AT_S)
        pooled = np.concatenate([LATENCIES[run][inside] for run in (1, 2)])
        assert (row["n_runs"], row["n_requests"], row["n_timeouts"]) == (2, pooled.size, 0)
        assert row["mean_ns"] == pytest.approx(pooled.mean())
        for name, share in (("p50", 0.5), ("p90", 0.9)):
            assert row[f"{name}_ns"] == pytest.approx(np.quantile(pooled, share))
        assert row["p99_ns"] is None, "it takes 1,000 requests, a bin has 400"


def test_curves_end_where_too_few_requests_are_beyond(project) -> None:
    write(project, (1, 2))
    project.make()
    (row,) = project.rows("SELECT * FROM percentile_curves")
    pooled = np.concatenate([LATENCIES[1], LATENCIES[2]])
    assert row["latencies_ns"] == pytest.approx(np.quantile(pooled, row["shares"]))
    assert max(row["shares"]) * pooled.size <= pooled.size - 10
    assert 0.99 in row["shares"] and 0.999 not in row["shares"] and row["least_from_share"] is None
    for run in project.rows("SELECT * FROM run_figures ORDER BY run"):
        own = LATENCIES[run["run"]]
        assert run["latencies_ns"] == pytest.approx(np.quantile(own, run["shares"]))
        assert run["p99_ns"] == pytest.approx(np.quantile(own, 0.99)) == pytest.approx(run["ok_p99_ns"])
        assert (run["mean_ns"], run["n_requests"]) == (pytest.approx(own.mean()), N)


def test_timeouts_are_least_values(project) -> None:
    """Of 4,000 requests 100 in the last bin but one timed out after 5 s."""
    late = set(np.flatnonzero((AT_S >= 9) & (AT_S < 9.25)).tolist())
    assert len(late) == 100
    write(project, (1,), late)
    project.make()
    rows = project.rows("SELECT * FROM time_bins ORDER BY from_s")
    assert [row["n_timeouts"] for row in rows] == [100 if row["from_s"] == 9 else 0 for row in rows]
    (hit,) = (row for row in rows if row["from_s"] == 9)
    assert hit["p90_ns"] == 5e9 and hit["p90_censored"], "not the 0 s that the tool wrote"
    assert not any(row["p50_censored"] or row["p90_censored"] for row in rows if row is not hit)
    (curve,) = project.rows("SELECT * FROM percentile_curves")
    assert curve["least_from_share"] == min(share for share in curve["shares"] if share >= 0.975)
    run = project.row("SELECT p90_censored, p99_censored, p99_ns FROM run_figures")
    assert run == {"p90_censored": False, "p99_censored": True, "p99_ns": 5e9}


def test_a_run_more_costs_its_own_cell(project, monkeypatch) -> None:
    write(project, (1,))
    write(project, (2,), variant="other")
    project.make()
    computed = []
    original = run_requests.select

    def spy(connection, pools):
        computed.extend(file for pool in pools for file in pool.files)
        original(connection, pools)

    monkeypatch.setattr(run_requests, "select", spy)
    project.make()
    assert computed == []
    (project.archive / "demo/here" / TIMESTAMP / str(RATE) / "other/1.results.json.zst").write_bytes(
        content(LATENCIES[1])
    )
    project.make()
    assert computed and all("other" in file for file in computed)


def test_a_comparison_of_one_campaign_takes_its_cells(project, monkeypatch) -> None:
    write(project, (1, 2))
    project.make()
    monkeypatch.setattr(distributions, "_curve", None)
    campaigns = list(archive.campaigns(project.archive))
    compare(
        Comparison(id="one", title="One", app="demo", hosts=("here",), timestamps=(TIMESTAMP,)),
        campaigns,
        project.tables,
    )
    columns = "rate, variant, from_s, n_runs, n_requests, p50_ns, p90_ns"
    own = project.rows(f"SELECT {columns} FROM time_bins WHERE comparison = 'one' ORDER BY ALL")
    assert own == project.rows(f"SELECT {columns} FROM time_bins WHERE comparison IS NULL ORDER BY ALL") != []


def test_a_comparison_of_a_part_of_the_runs_computes_its_own(project) -> None:
    write(project, (1, 2))
    project.make()
    campaigns = list(archive.campaigns(project.archive))
    leaving_out = Comparison(
        id="part", title="Part", app="demo", hosts=("here",), timestamps=(TIMESTAMP,), exclude=("*/2.*",)
    )
    compare(leaving_out, campaigns, project.tables)
    row = project.row("SELECT n_runs, shares, latencies_ns FROM percentile_curves WHERE comparison = 'part'")
    assert row["n_runs"] == 1
    assert row["latencies_ns"] == pytest.approx(np.quantile(LATENCIES[1], row["shares"]))


def test_runs_without_requests_have_none_of_it(project) -> None:
    write_cell(project.archive, {"1.summary.json": b'{"requests": 100, "latencies": {"mean": 5}}'})
    project.make()
    for table in ("run_figures", *distributions.POOLED):
        assert project.rows(f"SELECT * FROM {table}") == []
