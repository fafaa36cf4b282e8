"""The same cell in several campaigns of an archive."""

import json
import shutil

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis import history
from loadstone.percentiles import LATENCIES
from support import rawfiles
from tables.tabling import Project

# By time, not by text: the third is an hour before the fourth.
TIMES = [f"2026-0{month}-01T12:00:00+00:00" for month in (1, 2)] + ["2026-03-01T23:30:00+14:00"]
TIMES += [f"2026-0{month}-01T10:30:00+00:00" for month in (3, 4, 5, 6)]
RUNS = 4


def campaign(
    project: Project,
    timestamp: str,
    factor: float = 1.0,
    *,
    runs: int = RUNS,
    failing: int = 0,
    timing_out: int = 0,
    **changes,
):
    """Runs of 400 requests of about 10 ms times `factor`; so many of the first fail, of the last time out."""
    random = np.random.default_rng(list(timestamp.encode()))
    files = {}
    for run in range(1, runs + 1):
        latencies_ns = 1e7 * factor * random.normal(1, 0.01) * random.lognormal(0, 0.2, 400)
        lines = rawfiles.lines(latencies_ns, rate=100)
        if timing_out:
            kept, error = (
                lines.splitlines(keepends=True)[:-timing_out],
                "context deadline exceeded (Client.Timeout exceeded)",
            )
            more = [
                rawfiles.line(seq, 2 * 10**9, sent_ns=rawfiles.START_NS + seq * 10**7, code=0, error=error)
                for seq in range(len(kept), 400)
            ]
            lines = b"".join([*kept, *more])
        for seq in range(failing):
            lines = lines.replace(b'"seq":%d,"code":200' % seq, b'"seq":%d,"code":503' % seq)
        files[f"{run}.results.json"] = lines
    options = {"testOptions": {"rate": "100", "duration": "4s"}} | changes
    return rawfiles.write_cell(project.archive, files, at=timestamp, **options)


def write(project: Project, notes=None) -> None:
    project.make()
    history.write(list(archive.campaigns(project.archive)), project.tables, notes or {})


@pytest.fixture(scope="module")
def stepped(tmp_path_factory) -> Project:
    """Seven campaigns of which the fifth is half as slow again; in the sixth and seventh requests fail."""
    project = Project(tmp_path_factory.mktemp("stepped"))
    for position, timestamp in enumerate(TIMES):
        campaign(project, timestamp, 1.0 if position < 4 else 1.5, failing=40 if position > 4 else 0)
    write(project, {("demo", "here", TIMES[4]): "A new <b>kernel</b>"})
    return project


def levels(project: Project, statistic: str) -> list[tuple[str, int, bool]]:
    query = f"SELECT timestamp, level, change FROM history WHERE statistic = '{statistic}' ORDER BY started_at"
    return [tuple(row.values()) for row in project.rows(query)]


@pytest.mark.parametrize("statistic", LATENCIES)
def test_a_step_is_where_it_was_put(stepped, statistic):
    expected = [(name, 1 if at < 4 else 2, at == 4) for at, name in enumerate(TIMES)]
    assert levels(stepped, statistic) == expected


def test_a_step_of_errors(stepped):
    assert [level for _, level, _ in levels(stepped, "error_fraction")] == [1, 1, 1, 1, 1, 2, 2]


def test_figures_are_those_of_cells(stepped):
    rows = stepped.rows(
        "SELECT value, low, high, h.n_runs, p99_ns, p99_low_ns, p99_high_ns, c.n_runs AS runs FROM history h "
        "JOIN cells c USING (app, host, timestamp, variant, rate) WHERE statistic = 'p99' AND stream = 'main'"
    )
    assert len(rows) == 7
    for row in rows:
        assert [row[name] for name in ("value", "low", "high", "n_runs")] == [
            row[name] for name in ("p99_ns", "p99_low_ns", "p99_high_ns", "runs")
        ]


def test_notes_stand_with_their_campaign(stepped):
    noted = stepped.rows("SELECT DISTINCT timestamp, note FROM history WHERE note IS NOT NULL")
    assert noted == [{"timestamp": TIMES[4], "note": "A new <b>kernel</b>"}]


def test_an_interval_of_errors_holds_what_chance_leaves(stepped):
    none = stepped.row(f"SELECT * FROM history WHERE statistic = 'error_fraction' AND timestamp = '{TIMES[0]}'")
    assert (none["value"], none["low"]) == (0.0, 0.0)
    assert 0 < none["high"] < 0.01
    some = stepped.row(f"SELECT * FROM history WHERE statistic = 'error_fraction' AND timestamp = '{TIMES[6]}'")
    assert some["value"] == pytest.approx(0.1)
    assert some["low"] < 0.1 < some["high"]


def test_no_request_is_read(stepped, tmp_path):
    """So a new campaign costs itself, and one look at cells and runs."""
    shutil.copytree(stepped.tables, tmp_path / "tables")
    for table in ("requests", "facts", "replicates", "history"):
        shutil.rmtree(tmp_path / "tables" / table, ignore_errors=True)
    history.write(list(archive.campaigns(stepped.archive)), tmp_path / "tables", {})
    (file,), (other,) = ((each / "history").glob("*.parquet") for each in (stepped.tables, tmp_path / "tables"))
    query = "SELECT * EXCLUDE note FROM read_parquet('{}') ORDER BY ALL"
    assert stepped.rows(query.format(file)) == stepped.rows(query.format(other))


def test_other_ways_of_measuring_are_series_of_their_own_and_named(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1], 3.0, testMode="serial")
    workload = {"variant": "plain", "hostname": "here", "test_replicas": 10}
    campaign(project, TIMES[2], 3.0, workloadInfo=workload)
    campaign(project, TIMES[3], labels={"pods": "20", "commit": "abc"})
    write(project)
    rows = project.rows("SELECT way, level, differs FROM history WHERE statistic = 'p50' ORDER BY started_at")
    assert [row["level"] for row in rows] == [1, 1, 1, 1]
    ways = [row["way"] for row in rows]
    assert len(set(ways)) == 3 and ways[0] == ways[3] == "open load by vegeta, 1 replica"
    assert rows[0]["differs"] == []
    assert "load model: open before, serial here" in rows[1]["differs"]
    assert "replicas: 1 before, 10 here" in rows[2]["differs"]
    assert rows[3]["differs"] == [
        "replicas: 10 before, 1 here",
        "label commit: none before, abc here",
        "label pods: 10 before, 20 here",
    ]


def test_what_sent_the_requests_is_named_where_it_differs(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1], generator={"name": "vegeta", "program": "paced", "count": 4})
    campaign(project, TIMES[2], generator={"name": "k6"})
    write(project)
    rows = project.rows("SELECT way, level, differs FROM history WHERE statistic = 'mean' ORDER BY started_at")
    assert [row["way"] for row in rows] == [
        f"open load by {program}, 1 replica" for program in ("vegeta", "vegeta (4 of paced)", "k6")
    ]
    assert {row["level"] for row in rows} == {1}
    assert [row["differs"] for row in rows] == [
        [],
        ["sent by: vegeta before, 4 of paced here"],
        ["generator: vegeta before, k6 here"],
    ]


def test_single_runs_have_values_and_no_interval(project):
    for timestamp in TIMES[:3]:
        campaign(project, timestamp, 1.0 if timestamp != TIMES[2] else 5.0, runs=1)
    write(project)
    rows = project.rows("SELECT value, low, high, level FROM history WHERE statistic = 'p50' ORDER BY started_at")
    assert rows[2]["value"] > 4 * rows[0]["value"]
    assert [(row["low"], row["high"], row["level"]) for row in rows] == [(None, None, 1)] * 3
    # 400 requests say nothing of p99.
    assert project.rows("SELECT * FROM history WHERE statistic = 'p99'") == []


def test_a_figure_among_timeouts_is_the_least_that_it_may_be(project):
    campaign(project, TIMES[0], timing_out=60)
    write(project)
    rows = project.rows("SELECT statistic, value, low, at_least FROM history ORDER BY statistic")
    found = {row["statistic"]: row for row in rows}
    assert {name for name, row in found.items() if row["at_least"]} == {"mean", "p90", "p99"}
    assert found["p90"]["value"] >= 2e9 and found["p90"]["low"] is None and found["p50"]["low"]


def reports(
    project: Project, timestamp: str, means_ms: list[float], *, requests: int = 2000, lacking: str = ""
) -> None:
    """Runs of which only vegeta's report is left."""
    files = {}
    for run, mean_ms in enumerate(means_ms, 1):
        latencies = {"mean": mean_ms * 1e6, "50th": 1e6 * run, "90th": 2e6 * run, "99th": 3e6 * run, "max": 9e7}
        content = {"requests": requests, "success": 1 - run / 100, "latencies": latencies, "status_codes": {"200": 1}}
        content.pop(lacking, None)
        files[f"{run}.summary.json"] = json.dumps(content).encode()
    rawfiles.write_cell(
        project.archive, files, at=timestamp, testOptions={"rate": "100", "duration": f"{requests // 100}s"}
    )


def test_campaigns_with_reports_alone_are_a_series_of_their_own(project):
    means_ms = [10.0, 12.0, 11.0]
    campaign(project, TIMES[0])
    for timestamp in TIMES[1:3]:
        reports(project, timestamp, means_ms)
    reports(project, TIMES[3], means_ms[:1])
    reports(project, TIMES[4], means_ms[:1], requests=500)
    reports(project, TIMES[5], means_ms, lacking="success")
    write(project)
    query = "SELECT statistic, value, low, high, n_runs, way FROM history WHERE timestamp = '{}' ORDER BY statistic"
    rows = {row["statistic"]: row for row in project.rows(query.format(TIMES[1]))}
    assert rows.keys() == {"mean", "error_fraction"}, "percentiles of several reports are never averaged"
    assert {row["way"] for row in rows.values()} == {"open load by vegeta, 1 replica, as reported"}
    logs, mean = np.log(means_ms), rows["mean"]
    reach = 4.302653 * logs.std(ddof=1) / np.sqrt(3)  # Student's t, 2 degrees of freedom
    assert mean["value"] == pytest.approx(11e6) and mean["n_runs"] == 3
    assert [mean["low"], mean["high"]] == pytest.approx([11e6 * np.exp(-reach), 11e6 * np.exp(reach)])
    assert rows["error_fraction"]["value"] == pytest.approx(0.02)
    single = {row["statistic"]: (row["value"], row["low"]) for row in project.rows(query.format(TIMES[3]))}
    expected = {"mean": 10e6, "p50": 1e6, "p90": 2e6, "p99": 3e6, "error_fraction": 0.01}
    assert single == {name: (pytest.approx(value), None) for name, value in expected.items()}
    few = {row["statistic"] for row in project.rows(query.format(TIMES[4]))}
    assert few == {"mean", "p50", "p90", "error_fraction"}, "500 requests support no p99"
    assert [row["statistic"] for row in project.rows(query.format(TIMES[5]))] == ["mean"]
    assert project.rows("SELECT DISTINCT evidence FROM history ORDER BY 1") == [
        {"evidence": "reports"},
        {"evidence": "requests"},
    ]
    raw = project.rows(query.format(TIMES[0]))
    assert {row["way"] for row in raw} == {"open load by vegeta, 1 replica"}


def test_a_report_beside_requests_that_count_is_in_no_figure(project):
    cell = campaign(project, TIMES[0])
    (cell.path / "9.summary.json").write_bytes(b'{"requests": 400, "success": 1, "latencies": {"mean": 9e9}}')
    write(project)
    assert {row["evidence"] for row in project.rows("SELECT evidence FROM history")} == {"requests"}


def test_an_empty_archive_has_an_empty_history(project):
    history.write([], project.tables, {})
    assert project.rows("SELECT * FROM history") == []


def test_left_out_runs_are_in_no_figure(project):
    for timestamp in TIMES[:2]:
        campaign(project, timestamp)
    project.convert()
    project.analyse([{"tag": "FAILED", "variant": "plain", "run": run} for run in ("1", "2", "3", "4")], ["FAILED"])
    history.write(list(archive.campaigns(project.archive)), project.tables, {})
    assert project.rows("SELECT * FROM history") == []
