"""Runs judged and cells computed, against numpy and vegeta on the same data."""

import hashlib
import json
import re
import shutil

import numpy as np
import pytest
from loadstone.tables.exclusion import judge
from loadstone.tables.layout import ANSWERS
from support import rawfiles
from support.rawfiles import line, lines, write_cell

RNG = np.random.default_rng(7)
RUN = rawfiles.compress(lines([2_000_000] * 100))


def latencies(runs: int, requests: int) -> list[np.ndarray]:
    return [RNG.lognormal(15, 0.5, requests).astype(np.int64) for _ in range(runs)]


def reasons(project) -> dict[int, str | None]:
    project.make()
    return {row["run"]: row["exclusion_reason"] for row in project.rows("SELECT run, exclusion_reason FROM runs")}


# --- cells -----------------------------------------------------------------------------------------------------------


def test_every_figure_equals_numpy(project):
    data = latencies(3, 1200)
    codes = [np.where(np.arange(1200) % divisor == 1, 503, 200) for divisor in (10, 20, 40)]
    for run, (values, statuses) in enumerate(zip(data, codes, strict=True), start=1):
        content = b"".join(
            line(seq, int(value), code=int(code), sent_ns=rawfiles.START_NS + seq * 10**6)
            for seq, (value, code) in enumerate(zip(values, statuses, strict=True))
        )
        write_cell(project.archive, {f"{run}.results.json.zst": rawfiles.compress(content)}, rate="1200")
    project.make()
    cell = project.row("SELECT * FROM cells")
    pooled, good = np.concatenate(data), np.concatenate(codes) == 200
    expected = {
        "n_runs": 3,
        "n_excluded": 0,
        "n_requests": 3600,
        "mean_ns": pooled.mean(),
        "std_ns": pooled.std(),
        "run_mean_ns": np.mean([values.mean() for values in data]),
        "run_std_ns": np.std([values.mean() for values in data]),
        "ok_n_requests": good.sum(),
        "ok_mean_ns": pooled[good].mean(),
        "ok_std_ns": pooled[good].std(),
        "ok_run_mean_ns": np.mean([v[c == 200].mean() for v, c in zip(data, codes, strict=True)]),
        "ok_run_std_ns": np.std([v[c == 200].mean() for v, c in zip(data, codes, strict=True)]),
        "error_fraction": np.mean([0.1, 0.05, 0.025]),
        "error_fraction_std": np.std([0.1, 0.05, 0.025]),
    }
    expected |= {f"p{name}_ns": np.quantile(pooled, float(f"0.{name}")) for name in ("50", "90", "95", "99", "999")}
    expected |= {f"ok_p{name}_ns": np.quantile(pooled[good], float(f"0.{name}")) for name in ("50", "90", "99")}
    assert {name: cell[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert dict(cell["error_fractions"]) == pytest.approx({"http_503": expected["error_fraction"]})
    assert dict(cell["error_fraction_stds"]) == pytest.approx({"http_503": expected["error_fraction_std"]})
    assert [cell[f"{name}_estimable"] for name in ("p50", "p90", "p95", "p99", "p999")] == [True] * 4 + [False]
    for name in ("mean", "p50", "p90", "p95", "p99"):
        assert cell[f"{name}_low_ns"] < cell[f"{name}_ns"] < cell[f"{name}_high_ns"], name
    assert (cell["p999_low_ns"], cell["p999_high_ns"]) == (None, None)


def test_a_class_that_one_run_alone_has_counts_as_zero_in_the_others(project):
    refused = {"code": 0, "error": "connection refused"}
    write_cell(
        project.archive,
        {
            "1.results.json": lines([1] * 50) + b"".join(line(seq, **refused) for seq in range(50, 100)),
            "2.results.json": lines([1] * 100),
        },
    )
    project.make()
    cell = project.row("SELECT * FROM cells")
    assert dict(cell["error_fractions"]) == {"refused": 0.25}
    assert dict(cell["error_fraction_stds"]) == {"refused": 0.25}


def test_the_figures_are_vegetas_own(project, attack):
    write_cell(project.archive, {"1.results.bin": attack.binary})
    project.make()
    cell = project.row("SELECT * FROM cells")
    assert cell["n_requests"] == attack.report["requests"]
    assert int(cell["mean_ns"]) == attack.report["latencies"]["mean"]
    assert 1 - cell["error_fraction"] == pytest.approx(attack.report["success"])


def test_one_run_has_no_interval(project):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    project.make()
    cell = project.row("SELECT * FROM cells")
    assert (cell["n_runs"], cell["p50_estimable"]) == (1, True)
    assert [cell[f"{name}_low_ns"] for name in ("mean", "p50", "p99")] == [None] * 3


def test_warm_up_and_excluded_runs_are_in_no_figure(project):
    slow = rawfiles.compress(lines([9_000_000] * 50))
    write_cell(
        project.archive,
        {"1.results.json.zst": RUN, "1.warmups.json.zst": slow, "2.results.json.zst": slow, "3.results.json.zst": RUN},
    )
    project.make()
    cell = project.row("SELECT * FROM cells")
    assert (cell["n_runs"], cell["n_excluded"], cell["n_requests"], cell["std_ns"]) == (2, 1, 200, 0.0)


def test_a_cell_without_a_run_left_has_no_figures(project):
    write_cell(project.archive, {"1.results.json.zst": RUN[:60]})
    project.make()
    assert project.rows("SELECT * FROM cells") == []


def test_two_folders_that_mean_one_variant_are_pooled_and_their_runs_told_apart(project):
    for folder, latency_ns in (("envoy", 1_000_000), ("istio", 3_000_000)):
        write_cell(project.archive, {"1.results.json": lines([latency_ns] * 100)}, variant=folder)
    project.make()
    cell = project.row("SELECT * FROM cells")
    assert (cell["variant"], cell["n_runs"], cell["n_requests"]) == ("istio", 2, 200)
    assert (cell["run_mean_ns"], cell["run_std_ns"]) == (2_000_000, 1_000_000)


def test_the_same_data_give_the_same_intervals(project):
    for run, values in enumerate(latencies(3, 100), start=1):
        write_cell(project.archive, {f"{run}.results.json": lines(values)})
    project.make()
    first = project.rows("SELECT * FROM cells")
    shutil.rmtree(project.tables / ANSWERS)  # what was computed is not computed again
    project.analyse()
    assert project.rows("SELECT * FROM cells") == first


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_may_differ_by_one_percent(project):
    counts = {1: 1000, 2: 990, 3: 1010, 4: 989, 5: 1011}
    files = {f"{run}.results.json.zst": rawfiles.compress(lines([1] * count)) for run, count in counts.items()}
    write_cell(project.archive, files, rate="1000")
    assert reasons(project) == {
        1: None,
        2: None,
        3: None,
        4: "989 requests instead of 1,000",
        5: "1,011 requests instead of 1,000",
    }
    complete = project.rows("SELECT complete FROM runs ORDER BY run")
    assert [row["complete"] for row in complete] == [True, True, True, False, False]


def test_repeated_numbers_exclude(project):
    write_cell(project.archive, {"1.results.json": lines([1] * 98) + line(5) + line(5)})
    assert reasons(project) == {1: "2 requests appear more than once"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"testOptions": {"rate": "200", "duration": "500ms"}},
            "gives the rate as 200.0, but the folder name says '100'",
        ),
        ({"workloadInfo": {"hostname": "there"}}, "gives the hostname as 'there', but the folder name says 'here'"),
        ({"timestamp": "2026-11-21T12:00:00+00:00"}, "gives the timestamp as '2026-11-21T12:00:00+00:00'"),
    ],
)
def test_metadata_that_contradicts_its_path_excludes(project, changes, expected):
    write_cell(project.archive, {"1.results.json.zst": RUN}, **changes)
    assert f"metadata.json {expected}" in reasons(project)[1]


def test_the_same_instant_in_other_words_is_no_contradiction(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, timestamp="2026-11-21T12:00+01:00")
    assert reasons(project) == {1: None}


def test_a_renamed_folder_is_a_problem_only(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, workloadInfo={"variant": "filter", "hostname": "here"})
    assert reasons(project) == {1: None}
    assert "was collected as 'filter' and is stored in 'plain'" in project.row("SELECT problems[1] p FROM runs")["p"]


@pytest.mark.parametrize(
    ("content", "expected"), [(None, "is missing"), (b"{", "is not JSON"), (b"[]", "is not a JSON object")]
)
def test_metadata_that_says_nothing_excludes(project, content, expected):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    (cell.path / "metadata.json").unlink()
    if content is not None:
        (cell.path / "metadata.json").write_bytes(content)
    assert expected in reasons(project)[1]


def test_a_value_that_is_not_understood_is_a_problem_only(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, seed="seven")
    assert reasons(project) == {1: None}
    assert "seed has the value 'seven'" in project.row("SELECT problems[1] p FROM runs")["p"]


def test_checksums(project):
    right = f"{hashlib.sha256(RUN).hexdigest()}  1.results.json.zst\n"
    files = {
        "1.results.json.zst": RUN,
        "1.sha256": right.encode(),
        "2.results.json.zst": RUN,
        "2.sha256": right.replace("1.results", "2.results").replace(right[:4], "0000").encode(),
        "3.results.json.zst": RUN,
        "3.sha256": right.replace("1.results", "3.summary").encode(),
        "4.results.json.zst": rawfiles.compress(lines([1] * 50)),
        "4.sha256": right.replace("1.results", "4.results").encode(),
        "5.results.json.zst": rawfiles.compress(lines([1] * 50)),
    }
    write_cell(project.archive, files)
    found = reasons(project)
    assert (found[1], found[3]) == (None, None)
    assert "2.results.json.zst has changed since it was collected" in found[2]
    # A run that was short from the beginning may have been interrupted, one that became short was not.
    assert [row["run"] for row in project.rows("SELECT run FROM suggestions WHERE kind = 'cut short'")] == [5]
    assert any(
        "which is missing" in row["problem"] for row in project.rows("SELECT problem FROM problems WHERE run = 3")
    )


def test_a_run_of_which_only_the_summary_is_left(project, attack):
    write_cell(project.archive, {"1.summary.json": json.dumps(attack.report).encode()})
    project.make()
    run = project.row("SELECT * FROM runs")
    assert (run["evidence"], run["requests"], run["complete"], run["excluded"]) == ("summary", 100, True, False)
    assert any("has no results" in problem for problem in run["problems"])
    assert project.rows("SELECT * FROM cells") == []
    assert run["source"].endswith("/1.summary.json")
    earliest = re.sub(r"(\.\d{6})\d*", r"\1", attack.report["earliest"])
    assert run["started_at"].isoformat()[:26] == earliest[:26]


def test_two_folders_of_one_rate_with_the_same_run(project):
    for rate in ("100", "100.0"):
        write_cell(project.archive, {"1.results.json.zst": RUN}, rate=rate)
    project.make()
    texts = [row["exclusion_reason"] for row in project.rows("SELECT exclusion_reason FROM runs")]
    assert len(texts) == 2
    assert all("another folder" in text for text in texts)


def test_the_real_binary_file_is_marked_incomplete(project, shared):
    content = (shared / "uds/ambient-k3d/20_10/vegeta-results.bin").read_bytes()
    options = {"rate": "20", "duration": "300s"}
    write_cell(project.archive, {"1.results.bin": content}, rate="20", testOptions=options)
    assert reasons(project) == {1: "173 requests instead of 6,000"}
    codes = project.rows("SELECT code, count(*) n FROM requests GROUP BY code ORDER BY code")
    assert codes == [{"code": 200, "n": 171}, {"code": 503, "n": 2}]
    p99 = project.row("SELECT quantile_cont(latency_ns, 0.99) q FROM requests")["q"]
    assert p99 == pytest.approx(45_621_000, rel=0.15), "vegeta estimates it by a sketch from 173 requests"


def test_send_lag(project):
    late = [seq * 10_000_000 + (40_000_000 if seq >= 90 else 0) for seq in range(100)]
    content = b"".join(line(seq, sent_ns=rawfiles.START_NS + sent_ns) for seq, sent_ns in enumerate(late))
    write_cell(project.archive, {"1.results.json": content, "2.results.json": b"".join(content.splitlines(True)[1:])})
    write_cell(project.archive, {"1.results.json": content}, variant="serial", testMode="serial")
    project.make()
    found = project.rows("SELECT send_lag_p99_ns lag FROM runs ORDER BY variant, run")
    assert [row["lag"] for row in found] == [pytest.approx(40e6), pytest.approx(40e6), None]


# --- tags ------------------------------------------------------------------------------------------------------------


def test_tags_exclude_when_asked_to_and_come_back_without_reading_a_raw_file(project):
    write_cell(project.archive, {f"{run}.results.json.zst": RUN for run in (1, 2, 3)})
    project.convert()
    tags = [{"variant": "pl*", "rate": "100", "run": "[12]", "tag": "FAILED", "reason": "power cut"}, {"tag": "NOTE"}]
    for path in project.archive.rglob("*.zst"):
        path.unlink()
    project.analyse(tags, ["FAILED"])
    found = project.rows("SELECT tags, exclusion_reason FROM runs ORDER BY run")
    assert [row["exclusion_reason"] for row in found] == ["tagged FAILED: power cut"] * 2 + [None]
    assert [row["tags"] for row in found] == [["FAILED", "NOTE"]] * 2 + [["NOTE"]]
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 1, "n_excluded": 2}
    project.analyse(tags, [])
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 3, "n_excluded": 0}


@pytest.mark.parametrize(
    ("tag", "matches"),
    [
        ({}, True),
        ({"variant": "istio"}, True),
        ({"variant": "envoy"}, True),
        ({"variant": "env"}, False),
        ({"rate": "0.5"}, True),
        ({"rate": "0.50"}, True),
        ({"rate": "0.51"}, False),
        ({"run": "1_0"}, False),
        ({"run": "1?"}, True),
        ({"run": "1"}, False),
    ],
)
def test_patterns(tag, matches):
    fact = {"variant": "istio", "variant_dir": "envoy", "rate": 0.5, "run": 10, "faults": [], "expected_requests": None}
    verdict = judge(fact, 5, 0, [tag | {"tag": "BAD"}], {"BAD"})
    assert verdict.excluded is matches
    assert verdict.complete is None
