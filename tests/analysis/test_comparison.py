"""Comparisons by either of the old methods and by ours, against numpy; what is left out, and what is refused."""

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison, Fit
from loadstone.readers import FORMATS
from loadstone.tables import database, layout
from scipy import stats as scipy_stats
from support import foreign, rawfiles, shapes
from support.rawfiles import line

EARLY, LATE, MOONE = "2024-04-26T01:47:38-04:00", "2025-01-02T11:48:47-05:00", "2024-04-09T20:14:12-04:00"
RNG = np.random.default_rng(11)


def both(**changes) -> Comparison:
    return Comparison(
        **({"id": "both", "title": "Both", "app": "shop", "hosts": ("shiver",), "timestamps": (EARLY, LATE)} | changes)
    )


def write_run(
    project,
    run: int,
    latencies_ns,
    codes,
    *,
    timestamp=LATE,
    rate="10",
    variant="istio",
    host="shiver",
    mode="vegeta",
    raw=True,
    reported=True,
) -> None:
    """One run of 100 requests; what the tool reports of it is 1 % slower than its requests are."""
    files = {}
    if raw:
        content = b"".join(
            line(seq, int(ns), code=int(code)) for seq, (ns, code) in enumerate(zip(latencies_ns, codes, strict=True))
        )
        files[f"{run}.results.json.zst"] = rawfiles.compress(content)
    if reported:
        values, counts = np.unique(codes, return_counts=True)
        by_code = {str(value): int(count) for value, count in zip(values, counts, strict=True)}
        files[f"{run}.summary.json"] = shapes.summary(1.01 * float(np.mean(latencies_ns)), by_code)
    cell = shapes.cell(project.archive, timestamp, rate, variant, host=host)
    shapes.write(cell, shapes.version_3(timestamp, host, rate, variant, mode), files)


def run(failing: int = 0, scale: float = 1.0):
    """100 latencies and codes, of which the first are 503 and 0 by turns, then one 302."""
    codes = np.full(100, 200)
    codes[:failing] = [503, 0] * (failing // 2) + [503] * (failing % 2)
    codes[failing] = 302 if failing else 200
    return (RNG.lognormal(15, 0.5, 100) * scale).astype(np.int64), codes


def result(project, comparison, host=None) -> list[dict]:
    project.make()
    compare(comparison, list(archive.campaigns(project.archive)), project.tables)
    return project.rows("SELECT * FROM comparisons ORDER BY rate, variant")


def test_every_figure_of_joined_campaigns_equals_numpy(project):
    data = {
        (timestamp, number): run(failing) for timestamp, number, failing in ((EARLY, 1, 0), (LATE, 1, 10), (LATE, 2, 4))
    }
    for (timestamp, number), (latencies, codes) in data.items():
        write_run(
            project, number, latencies, codes, timestamp=timestamp, variant="envoy" if timestamp == EARLY else "istio"
        )
    (found,) = result(project, both())
    means = np.array([latencies.mean() for latencies, _ in data.values()])
    pooled = np.concatenate([latencies for latencies, _ in data.values()])
    good = np.concatenate([codes == 200 for _, codes in data.values()])
    of_code = {code: np.array([np.mean(codes == code) for _, codes in data.values()]) for code in (503, 0)}
    failed, other = of_code[503] + of_code[0], np.array([np.mean(codes == 302) for _, codes in data.values()])
    expected = {
        "vegeta_summaries_mean_ns": 1.01 * means.mean(),
        "vegeta_summaries_std_ns": 1.01 * means.std(),
        "all_raw_data_mean_ns": pooled.mean(),
        "all_raw_data_std_ns": pooled.std(),
        "all_raw_data_ok_mean_ns": pooled[good].mean(),
        "all_raw_data_ok_std_ns": pooled[good].std(),
        "error_fraction": failed.mean(),
        "error_fraction_std": failed.std(),
        "error_503_fraction": of_code[503].mean(),
        "error_503_fraction_std": of_code[503].std(),
        "error_0_fraction": of_code[0].mean(),
        "error_0_fraction_std": of_code[0].std(),
        "error_other_fraction": other.mean(),
        "error_other_fraction_std": other.std(),
        "run_mean_ns": means.mean(),
        "run_std_ns": means.std(),
        "n_requests": 300,
        "ok_n_requests": good.sum(),
        "p50_ns": np.quantile(pooled, 0.5),
        "p95_ns": np.quantile(pooled, 0.95),
        "ok_p90_ns": np.quantile(pooled[good], 0.9),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert other.any() and of_code[0].any()
    named = {
        name: found[name]
        for name in ("comparison", "app", "host", "variant", "rate", "timestamps", "evidence", "load_model")
    }
    assert named == {
        "comparison": "both",
        "app": "shop",
        "host": "shiver",
        "variant": "istio",
        "rate": 10,
        "timestamps": [EARLY, LATE],
        "evidence": "raw",
        "load_model": "open",
    }
    assert [found[f"{method}n_runs"] for method in ("", "vegeta_summaries_", "all_raw_data_")] == [3, 3, 3]
    assert found["p50_low_ns"] < found["p50_ns"] < found["p50_high_ns"]
    assert (found["p90_estimable"], found["p99_estimable"], found["p99_low_ns"]) == (True, False, None)


def test_a_row_of_one_campaign_is_its_cell(project):
    for number in (1, 2, 3):
        write_run(project, number, *run(number))
    (found,) = result(project, both())
    cell = project.row("SELECT * FROM cells")
    same = set(cell) & set(found) - {"host", "n_excluded"} - {name for name in cell if name.startswith("error")}
    assert {name: found[name] for name in same} == {name: cell[name] for name in same}
    assert len(same) > 25
    assert found["all_raw_data_std_ns"] == cell["std_ns"]


def test_computed_anew_it_has_the_same_figures(project):
    for number in (1, 2, 3):
        write_run(project, number, *run(number))
    write_run(project, 4, *run(0, 100))
    (found,) = result(project, both(exclude=(f"{LATE}/10/*/4.*",)))
    (project.archive / f"shop/shiver/{LATE}/10/istio/4.results.json.zst").unlink()
    (project.archive / f"shop/shiver/{LATE}/10/istio/4.summary.json").unlink()
    (again,) = result(project, both())
    numbers = [name for name, value in found.items() if isinstance(value, int | float)]
    exact = [name for name in numbers if not name.endswith(("_low_ns", "_high_ns"))]
    assert {name: found[name] for name in exact} == pytest.approx({name: again[name] for name in exact}, rel=1e-12)
    assert found["p90_low_ns"] == pytest.approx(again["p90_low_ns"], rel=0.2), "another seed"


def test_excluded_runs_are_in_no_figure(project):
    latencies, codes = run(6)
    write_run(project, 1, latencies, codes)
    write_run(project, 2, latencies[:50], codes[:50])
    (found,) = result(project, both())
    assert (found["n_runs"], found["n_excluded"], found["vegeta_summaries_n_runs"]) == (1, 1, 1)
    assert found["all_raw_data_mean_ns"] == latencies.mean()
    assert found["error_503_fraction"] == 0.03


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {("envoy", 10), ("envoy", 20), ("istio", 10)}),
        ({"exclude": ("*/20/*",)}, {("envoy", 10), ("istio", 10)}),
        ({"exclude": ("*/*/envoy/*",)}, {("istio", 10)}),
        ({"exclude": (f"{EARLY}/*",)}, {("istio", 10)}),
        ({"exclude": ("*/1.summary.json", "*/1.results.json.zst")}, set()),
        ({"variants": ("istio",)}, {("istio", 10)}),
        ({"rates": (20.0,)}, {("envoy", 20)}),
        ({"rates": (20.0,), "variants": ("istio",)}, set()),
        ({"timestamps": (LATE,)}, {("istio", 10)}),
    ],
)
def test_what_is_asked_for(project, changes, expected):
    project.aliases = {}
    write_run(project, 1, *run(), timestamp=EARLY, variant="envoy")
    latencies, codes = (np.tile(values, 2) for values in run())
    write_run(project, 1, latencies, codes, timestamp=EARLY, variant="envoy", rate="20")
    write_run(project, 1, *run())
    comparison = both(**changes)
    project.make()
    named = [campaign for campaign in comparison.campaigns(project.archive) if campaign.path.exists()]
    compare(comparison, named, project.tables)
    assert {(row["variant"], row["rate"]) for row in project.rows("SELECT * FROM comparisons")} == expected


def test_the_predecessors_patterns_for_bad_runs(project):
    for timestamp, number, pattern in ((MOONE, 4, f"{MOONE}/120/*/4.*"), (LATE, 5, f"{LATE}/100/*/5.*")):
        comparison = both(exclude=(pattern,))
        rate = pattern.split("/")[1]
        source = f"shop/moone/{timestamp}/{rate}/filter-97776ef1/{{}}.results.json.zst"
        assert comparison.excluding(source.format(number)) == pattern
        assert comparison.excluding(source.format(40 + number)) is None
        assert comparison.excluding(source.format(number).replace("results.json.zst", "k6.json.zst")) == pattern


def test_hosts_are_pooled_only_when_asked_by_name(project):
    write_run(project, 1, *run(), host="shiver")
    write_run(project, 1, *run(), host="moone")
    comparison = both(hosts=("shiver", "moone"))
    assert result(project, comparison) == []
    selection = compare(comparison, list(archive.campaigns(project.archive)), project.tables)
    assert "different hosts (moone, shiver)" in selection.refusals[0] and "allow: [hosts]" in selection.refusals[0]
    (found,) = result(project, both(hosts=("shiver", "moone"), allow=frozenset({"hosts"})))
    assert (found["host"], found["n_runs"], found["n_requests"]) == ("moone, shiver", 2, 200)


def test_open_and_serial_load_stand_side_by_side_when_asked_by_name_and_never_share_a_figure(project):
    serial, paced = run(), run()
    write_run(project, 1, *serial, timestamp=EARLY, mode="serial")
    write_run(project, 1, *paced)
    assert result(project, both()) == []
    found = {row["load_model"]: row for row in result(project, both(allow=frozenset({"load_models"})))}
    assert {model: row["n_runs"] for model, row in found.items()} == {"open": 1, "serial": 1}
    for row, (latencies, _) in ((found["serial"], serial), (found["open"], paced)):
        assert row["all_raw_data_mean_ns"] == pytest.approx(latencies.mean())
        assert row["vegeta_summaries_mean_ns"] == pytest.approx(1.01 * latencies.mean())


def write_other(project, text: str, timestamp: str, **generator) -> None:
    """The only run of a cell, of another tool: ``1.<name>`` with the name in `generator`."""
    cell = shapes.cell(project.archive, timestamp, "10", "istio", host="shiver")
    described = shapes.version_4(timestamp, "shiver", "10", "istio")
    described |= {"version": "5", "loadModel": "open", "generator": {"name": generator["name"]}}
    shapes.write(cell, described, {f"1.{generator['file']}": text.encode()})


def test_generators_that_measure_otherwise_stand_side_by_side_when_asked_by_name_and_never_share_a_figure(project):
    write_run(project, 1, *run())
    report = foreign.artillery([[2.0] * 50] * 4, arrivals=10).decode()
    write_other(project, report, EARLY, name="artillery", file="artillery.json")
    assert result(project, both()) == []
    selection = compare(both(), list(archive.campaigns(project.archive)), project.tables)
    assert "different load generators (artillery, vegeta)" in selection.refusals[0]
    assert "allow: [generators]" in selection.refusals[0]
    found = {row["generator"]: row for row in result(project, both(allow=frozenset({"generators"})))}
    assert {tool: (row["n_runs"], row["resolution_ns"]) for tool, row in found.items()} == {
        "artillery": (1, 1e6),
        "vegeta": (1, 1),
    }
    assert found["artillery"]["all_raw_data_mean_ns"] == 2_000_000 != found["vegeta"]["all_raw_data_mean_ns"]


def test_variants_of_different_generators_are_compared_only_when_asked_by_name(project):
    write_run(project, 1, *run(), variant="plain")
    write_other(project, foreign.HDR, LATE, name="wrk2", file="hdr.csv")
    assert result(project, both(timestamps=(LATE,))) == []
    found = result(project, both(timestamps=(LATE,), allow=frozenset({"generators"})))
    assert [(row["variant"], row["generator"]) for row in found] == [("istio", "wrk2"), ("plain", "vegeta")]
    assert found[0]["evidence"] == "histogram" and found[0]["all_raw_data_n_runs"] == 0
    assert found[0]["error_503_fraction"] is None, "a table of latencies says nothing of codes"


def test_summaries_and_requests_are_never_pooled_unasked(project):
    latencies, codes = run(6)
    write_run(project, 1, latencies, codes, raw=False)
    write_run(project, 2, latencies * 3, codes, reported=False)
    (found,) = result(project, both())
    assert (found["evidence"], found["n_runs"]) == ("raw, summary", 2)
    assert (found["vegeta_summaries_n_runs"], found["all_raw_data_n_runs"]) == (1, 1)
    assert found["vegeta_summaries_mean_ns"] == pytest.approx(1.01 * latencies.mean())
    assert found["all_raw_data_mean_ns"] == pytest.approx(3 * latencies.mean())
    (found,) = result(project, both(allow=frozenset({"evidence"})))
    assert (found["vegeta_summaries_n_runs"], found["all_raw_data_n_runs"]) == (2, 1)
    assert found["vegeta_summaries_mean_ns"] == pytest.approx((1.01 + 3) / 2 * latencies.mean())
    assert (found["error_503_fraction"], found["error_503_fraction_std"]) == (0.03, 0)
    assert found["error_other_fraction"] == pytest.approx(0.01)


def test_summaries_alone_are_enough(project):
    means = []
    for number in (1, 2):
        latencies, codes = run(2)
        write_run(project, number, latencies, codes, raw=False)
        means.append(1.01 * latencies.mean())
    (found,) = result(project, both())
    assert (found["evidence"], found["n_runs"], found["n_requests"], found["all_raw_data_n_runs"]) == (
        "summary",
        2,
        None,
        0,
    )
    assert found["vegeta_summaries_std_ns"] == pytest.approx(np.std(means))


def test_side_attacks_are_in_no_figure(project):
    latencies, codes = run()
    write_run(project, 1, latencies, codes)
    folder = project.archive / f"shop/shiver/{LATE}/10/istio"
    (folder / "1.presidio.results.json.zst").write_bytes((folder / "1.results.json.zst").read_bytes())
    (folder / "1.presidio.summary.json").write_bytes(shapes.summary(1e12, {"500": 100}))
    (found,) = result(project, both(exclude=("nothing",)))
    assert (found["n_requests"], found["error_fraction"]) == (100, 0)
    assert found["vegeta_summaries_mean_ns"] == pytest.approx(1.01 * latencies.mean())


def test_a_new_comparison_reads_no_raw_file(project, monkeypatch):
    write_run(project, 1, *run(), timestamp=EARLY)
    write_run(project, 1, *run())
    project.make()
    for file in project.archive.rglob("*.*"):
        if file.is_file():
            file.write_bytes(b"")
    monkeypatch.setattr("loadstone.tables.run_files.FORMATS", {})
    assert FORMATS
    compare(both(), list(archive.campaigns(project.archive)), project.tables)
    assert project.row("SELECT n_requests FROM comparisons") == {"n_requests": 200}


def test_the_view_holds_every_comparison_and_those_that_are_gone_are_pruned(project, tmp_path):
    write_run(project, 1, *run())
    result(project, both())
    campaigns = list(archive.campaigns(project.archive))
    compare(both(id="other"), campaigns, project.tables)
    compare(both(id="empty", timestamps=(EARLY,)), [], project.tables)
    assert [row["comparison"] for row in project.rows("FROM comparisons ORDER BY 1")] == ["both", "other"]
    database.prune_comparisons(project.tables, ["other"])
    database.prune(project.tables, campaigns)
    assert [row["comparison"] for row in project.rows("FROM comparisons")] == ["other"]
    assert not layout.comparison_file(project.tables, "both").exists()


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_lines_have_the_configured_confidence(project, confidence):
    rates, levels = (10, 20, 30, 40), (1.0e6, 2.2e6, 2.9e6, 4.3e6)
    for rate, level in zip(rates, levels, strict=True):
        write_run(project, 1, np.full(10 * rate, level), np.full(10 * rate, 200), rate=str(rate), raw=False)
    project.make()
    fitting = both(timestamps=(LATE,), fits=(Fit("rate", "mean"),))
    compare(fitting, list(archive.campaigns(project.archive)), project.tables, Settings(confidence=confidence))
    row = project.row("SELECT * FROM fits")
    assert row["problem"] is None
    expected = scipy_stats.linregress(rates, 1.01e-6 * np.array(levels))
    reach = scipy_stats.t.ppf((1 + confidence) / 2, 2) * expected.stderr
    assert (row["slope_high"] - row["slope"], row["confidence"]) == (pytest.approx(reach), confidence)
