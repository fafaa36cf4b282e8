"""Tables `knees`, `knee_shares`, `layers` and `interactions` from raw results of simulated servers and of reports."""

import shutil
from collections.abc import Mapping

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.archive import Campaign, Cell
from loadstone.config.comparisons import Comparison
from support import queues, rawfiles, shapes
from tables.tabling import Project

TIMESTAMP = "2026-11-21T11:00:00+00:00"
RUNS, DURATION_S = 4, 5
RATES = (10, 20, 40, 80, 120)
MS = 1e6
OVER = {"plain": (), "mesh": ("plain",), "cache": ("plain",), "both": ("mesh", "cache")}
SETTINGS = Settings(order=tuple(OVER), over=OVER)


def write_cell(
    project: Project,
    variant: str,
    rate: int,
    measured: queues.Measured,
    *,
    load_model: str = "vegeta",
    sent_rate: float | None = None,
) -> None:
    """One cell's runs, collected in blocks."""
    cell = Cell(Campaign(project.archive, "shop", "lab", TIMESTAMP), str(rate), variant)
    files = {}
    for number, (latencies, ok) in enumerate(zip(measured.latency_s, measured.ok, strict=True), start=1):
        content = b"".join(
            rawfiles.line(
                seq,
                int(latency * 1e9),
                sent_ns=rawfiles.START_NS + round(seq * 1e9 / (sent_rate or rate)),
                **({} if fine else {"code": 0, "error": "Get: context deadline exceeded"}),
            )
            for seq, (latency, fine) in enumerate(zip(latencies, ok, strict=True))
        )
        files[f"{number}.results.json.zst"] = rawfiles.compress(content)
    changes = {
        "testMode": load_model,
        "testOptions": {"duration": f"{DURATION_S}s", "rate": str(rate)},
        "runs": RUNS,
        "order": {"kind": "blocks", "positions": list(range(1, RUNS + 1))},
    }
    shapes.write(cell, rawfiles.metadata(cell, **changes), files)


def serve(generator: np.random.Generator, rate: int, workers: int, network_ms: float = 0) -> queues.Measured:
    return queues.attack(
        generator,
        rate,
        DURATION_S,
        RUNS,
        workers=workers,
        mean_service_s=0.02,
        timeout_s=3.2,
        network_s=network_ms / 1e3,
    )


@pytest.fixture(scope="module")
def layered(tmp_path_factory) -> Project:
    """Plain carries 400/s and mesh 50/s, whose way takes 2 ms longer; a cache 5 ms, and both 30 ms."""
    found = Project(tmp_path_factory.mktemp("layered"))
    generator = np.random.default_rng(3)
    for variant, workers, network_ms in (("plain", 8, 5), ("mesh", 1, 7), ("cache", 8, 10), ("both", 8, 30)):
        for rate in RATES:
            write_cell(found, variant, rate, serve(generator, rate, workers, network_ms))
    found.convert()
    analyse(found)
    return found


def analyse(project: Project) -> None:
    for campaign in archive.campaigns(project.archive):
        analyse_campaign(campaign, project.tables, settings=SETTINGS)


def by_variant(project: Project, query: str) -> Mapping[str, dict]:
    return {row["variant"]: row for row in project.rows(query)}


# --- knees -----------------------------------------------------------------------------------------------------------


def test_a_campaign_tells_the_knee_of_each_variant(layered):
    found = by_variant(layered, "SELECT * FROM knees WHERE comparison IS NULL")
    mesh = found["mesh"]
    assert mesh["low"] < 50 < mesh["high"] and mesh["low"] <= mesh["knee_rate"] <= mesh["high"]
    assert mesh["beyond"] == [80, 120]
    assert sorted(mesh["carried"] + mesh["near"] + mesh["beyond"]) == list(RATES)
    assert (mesh["app"], mesh["host"], mesh["timestamps"], mesh["n_runs"]) == ("shop", "lab", [TIMESTAMP], RUNS)
    assert (mesh["load_model"], mesh["evidence"], mesh["statistic"]) == ("open", "requests", "p50")
    for variant in ("plain", "cache", "both"):
        row = found[variant]
        assert (row["knee_rate"], row["high"], row["beyond"]) == (None, None, [])
        assert row["low"] == 120 and row["problem"] == "sustained up to 120 requests/s, the highest rate measured"


def test_shares_of_the_knee_are_interpolated_or_refused(layered):
    rows = layered.rows("SELECT * FROM knee_shares WHERE variant = 'mesh' AND statistic = 'p50' ORDER BY share")
    cells = {row["rate"]: row for row in layered.rows("SELECT * FROM cells WHERE variant = 'mesh'")}
    knee = layered.row("SELECT * FROM knees WHERE variant = 'mesh'")
    assert [row["share"] for row in rows] == [0.25, 0.5, 0.75]
    refused, *told = rows
    # Most requests at 120 timed out: their median is not known.
    assert refused["value_ns"] is None and "measured rates are 10 to 80" in refused["problem"]
    for row in told:
        assert row["load"] == pytest.approx(row["share"] * knee["knee_rate"])
        lower = max(rate for rate in RATES if rate <= row["load"])
        upper = min(rate for rate in RATES if rate >= row["load"])
        assert cells[lower]["p50_ns"] <= row["value_ns"] <= cells[upper]["p50_ns"]
        assert row["low_ns"] < row["value_ns"] < row["high_ns"]
        # Plain has no knee, so there is nothing to compare with.
        assert row["baseline"] == "plain" and row["ratio"] is None
        assert (
            row["problem"] == "“plain”: no saturation point: sustained up to 120 requests/s, the highest rate measured"
        )


def test_a_comparison_tells_the_same_of_the_same_runs(layered, project):
    shutil.copytree(layered.tables, project.tables)
    comparison = Comparison(id="c", title="C", app="shop", hosts=("lab",), timestamps=(TIMESTAMP,))
    compare(comparison, list(archive.campaigns(layered.archive)), project.tables, SETTINGS)
    for table in ("knees", "knee_shares", "layers", "interactions"):
        own, compared = (
            project.rows(f"SELECT * EXCLUDE (comparison) FROM {table} WHERE comparison IS {what} ORDER BY ALL")
            for what in ("NULL", "NOT DISTINCT FROM 'c'")
        )
        assert own and own == compared


def test_a_rate_that_was_not_sent_in_time_is_not_judged(project):
    generator = np.random.default_rng(4)
    for rate in RATES[1:4]:
        # What was to take 5 s took 6 at the highest: the target answered all that it was sent.
        sent = rate if rate < 80 else rate * 5 / 6
        write_cell(project, "plain", rate, serve(generator, rate, 8), sent_rate=sent)
    project.make()
    row = project.row("SELECT * FROM knees")
    assert (row["low"], row["high"], row["carried"], row["near"]) == (40, None, [20, 40], [80])
    assert "the load generator fell behind: 80" in row["problem"]


def test_users_who_wait_have_no_knee(project):
    generator = np.random.default_rng(4)
    for rate in RATES[:2]:
        write_cell(project, "plain", rate, serve(generator, rate, 8), load_model="serial")
    project.make()
    row = project.row("SELECT * FROM knees")
    assert (row["knee_rate"], row["low"], row["high"]) == (None, None, None)
    assert row["problem"] == "serial load waits for responses, so it has no saturation point"
    assert all(row["value_ns"] is None for row in project.rows("SELECT * FROM knee_shares"))


def test_reports_tell_a_knee_by_their_means(project):
    """Without throughput: 10 s at twice the capacity make the mean 5 s longer."""
    generator = np.random.default_rng(5)
    for rate, mean_ms in ((100, 20), (200, 22), (400, 5020)):
        files = {}
        for run in range(1, 6):
            mean_ns = mean_ms * MS * generator.normal(1, 0.03)
            files[f"{run}.summary.json"] = shapes.summary(mean_ns, {"200": rate * 10})
        cell = shapes.cell(project.archive, TIMESTAMP, str(rate), "plain")
        shapes.write(cell, shapes.version_3(TIMESTAMP, "shiver", str(rate), "plain"), files)
    project.make()
    row = project.row("SELECT * FROM knees")
    assert (row["low"], row["high"], row["by"], row["statistic"]) == (200, 400, "latency", "mean")
    assert (row["evidence"], row["n_runs"], row["beyond"]) == ("reports", 5, [400])
    assert row["knee_rate"] == pytest.approx(200, rel=0.1)
    shares = {row["statistic"]: row for row in project.rows("SELECT * FROM knee_shares WHERE share = 0.75")}
    assert shares["mean"]["value_ns"] and shares["p99"]["value_ns"] is None


# --- layers ----------------------------------------------------------------------------------------------------------


def test_layers_have_their_size(layered):
    rows = layered.rows("SELECT * FROM layers WHERE rate = 20 AND statistic IN ('mean', 'p50')")
    added = {(row["below"], row["variant"], row["statistic"]): row for row in rows}
    assert {key[:2] for key in added} == {("plain", "cache"), ("plain", "mesh"), ("mesh", "both"), ("cache", "both")}
    for (below, variant, _), row in added.items():
        assert row["added_low_ns"] < row["added_ns"] < row["added_high_ns"]
        if (below, variant) == ("plain", "cache"):
            assert row["added_low_ns"] < 5 * MS < row["added_high_ns"]
        if (below, variant) == ("cache", "both"):
            assert row["added_low_ns"] < 20 * MS < row["added_high_ns"]
        assert (row["n_runs"], row["below_n_runs"], row["n_pairs"]) == (RUNS, RUNS, RUNS)
    effect = layered.row(
        "SELECT * FROM effects WHERE rate = 20 AND statistic = 'p50' AND baseline = 'plain' AND variant = 'cache'"
    )
    same = added["plain", "cache", "p50"]
    assert (effect["shift"], effect["shift_low"]) == (same["added_ns"], same["added_low_ns"])


def test_layers_that_take_latency_away_are_pointed_out(layered):
    row = layered.row("SELECT * FROM layers WHERE rate = 80 AND statistic = 'p50' AND below = 'mesh'")
    assert row["added_high_ns"] < 0
    assert "negative overhead: “both” is faster than “mesh”" in row["warning"]
    assert "“mesh” is beyond its saturation point" in row["warning"]
    calm = layered.row("SELECT * FROM layers WHERE rate = 20 AND statistic = 'p50' AND variant = 'cache'")
    assert calm["warning"] is None


def test_what_is_not_known_of_a_layer_is_said(layered):
    row = layered.row("SELECT * FROM layers WHERE rate = 20 AND statistic = 'p99' AND variant = 'cache'")
    assert row["added_ns"] is None
    assert "too few requests: p99 needs 1,000" in row["warning"]


def test_layers_that_do_not_add_up_are_pointed_out(layered):
    found = {row["rate"]: row for row in layered.rows("SELECT * FROM interactions WHERE statistic = 'p50'")}
    assert set(found) == set(RATES)
    row = found[20]
    assert (row["bottom"], row["left"], row["right"], row["top"]) == ("plain", "mesh", "cache", "both")
    medians = {row["variant"]: row["p50_ns"] for row in layered.rows("SELECT * FROM cells WHERE rate = 20")}
    expected = medians["both"] - medians["mesh"] - medians["cache"] + medians["plain"]
    assert row["interaction_ns"] == pytest.approx(expected)
    assert row["interaction_low_ns"] < expected < row["interaction_high_ns"]
    assert found[80]["warning"] == "not additive"
    layer = layered.row("SELECT * FROM layers WHERE rate = 80 AND statistic = 'p50' AND below = 'cache'")
    assert "less than “mesh” adds to “plain”" in layer["warning"]


def test_one_run_tells_no_layer(project):
    generator = np.random.default_rng(6)
    for variant in ("plain", "mesh"):
        write_cell(project, variant, 20, serve(generator, 20, 8))
    for path in project.archive.rglob("mesh/[2-9].results.json.zst"):
        path.unlink()
    project.convert()
    analyse(project)
    rows = project.rows("SELECT * FROM layers WHERE statistic = 'p50'")
    assert [(row["added_ns"], row["warning"]) for row in rows] == [
        (None, "one run of “mesh”: the spread between runs is unknown; at least 2 runs are needed")
    ]
