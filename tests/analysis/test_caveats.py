"""What weakens conclusions: each weakness is found where there is one, and none in a clean sweep."""

import json

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.caveats import CAVEATS, WEIGHTS
from loadstone.analysis.caveats.base import ITEMS
from loadstone.analysis.comparison import compare
from loadstone.config.comparisons import Comparison
from loadstone.percentiles import ERRORS, LATENCIES
from loadstone.report.conclusions import with_caveats
from support import foreign, rawfiles
from support.rawfiles import line, lines, write_cell

BLOCKS = {"kind": "blocks", "positions": [1, 2, 3, 4, 5]}


def settled(level_ns: float, seed: int, requests: int = 1000) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (level_ns * np.exp(0.01 * generator.normal() + 0.1 * generator.normal(size=requests))).astype(int)


def write(
    project,
    variant,
    runs,
    *,
    rate="200",
    order=None,
    timestamp=rawfiles.TIMESTAMP,
    planned=None,
    about=None,
    **fields,
):
    """Runs of a variant, each an array of latencies, or the number of settled ones."""
    if isinstance(runs, int):
        level_ns = 2e6 if variant == "a" else 3e6
        runs = [settled(level_ns, seed) for seed in range(ord(variant), ord(variant) + runs)]
    files = {
        f"{number}.results.json.zst": rawfiles.compress(lines(latencies, float(rate), **fields))
        for number, latencies in enumerate(runs, start=1)
    }
    options = {"rate": rate, "duration": f"{len(runs[0]) / float(rate):g}s", "timeout": "2s"}
    changes = {"order": order or BLOCKS, "runs": planned or len(runs), "testOptions": options}
    if about:
        changes["workloadInfo"] = {"variant": variant, "hostname": "here", **about}
    write_cell(project.archive, files, rate=rate, variant=variant, at=timestamp, **changes)


def claims(project, **known) -> list[dict]:
    """Those of the one campaign by itself."""
    project.convert()
    project.analyse(**known)
    return project.rows("SELECT * FROM claims WHERE comparison IS NULL")


def one(project, claim, **known) -> dict:
    (found,) = [row for row in claims(project, **known) if row["claim"] == claim]
    assert found["text"].endswith(".") and found["remedy"] and found["weight"] in WEIGHTS
    assert 0 < found["n"] <= found["n_of"] and found["counted"] in ITEMS
    return found


def test_a_clean_sweep_has_no_weakness(project):
    for variant in "abc":
        for rate in ("100", "200"):
            write(project, variant, 5, rate=rate)
    assert claims(project) == []


def test_weaknesses_are_sorted_by_weight_and_all_declared(project):
    write(project, "a", 1, order={"kind": "fixed"})
    write(project, "b", 1, order={"kind": "fixed"}, planned=2)
    rows = claims(project)
    weights = [list(WEIGHTS).index(row["weight"]) for row in rows]
    assert weights == sorted(weights) and {row["claim"] for row in rows} <= CAVEATS.keys()
    assert {(row["app"], row["host"], row["comparison"]) for row in rows} == {("demo", "here", None)}
    assert rows[0]["claim"] == "one_run"


def test_one_run(project):
    write(project, "a", 1)
    write(project, "b", 5)
    found = one(project, "one_run")
    assert (found["weight"], found["variant"], found["rate"], found["n"], found["n_of"]) == ("serious", "a", 200, 1, 2)
    assert "Only one run of “a” at 200 requests/s" in found["text"]


def test_few_runs_is_but_a_note(project):
    for variant in "ab":
        write(project, variant, 3)
    found = one(project, "few_runs")
    assert (found["weight"], found["n"], found["variant"]) == ("note", 2, None)
    assert "Only 3 runs of every variant at 200 requests/s" in found["text"]


def test_a_sweep_cut_short_in_a_later_run_names_unbalanced_runs(project):
    """As one of the archive that was stopped inside run 8: eight runs at high rates, seven below."""
    for variant in "ab":
        for rate, runs in (("100", 7), ("200", 7), ("300", 8)):
            write(project, variant, runs, rate=rate, planned=10)
    found = one(project, "unbalanced")
    assert (found["weight"], found["n"], found["n_of"]) == ("limits", 4, 6)
    assert found["text"] == (
        "The number of valid runs differs, from 7 to 8: 8 runs of every variant at 300 requests/s; 7 runs of "
        "every variant at 100 and 200 requests/s."
    )
    missing = one(project, "unfinished")
    assert "16 of 60 planned runs are missing" in missing["text"]


def test_unlike_numbers_of_runs_between_variants_name_the_rates(project):
    write(project, "a", 6)
    write(project, "b", 5)
    found = one(project, "unbalanced")
    assert "It differs between variants at 200 requests/s." in found["text"]
    # The sweep has all that it planned: resuming it brings nothing.
    assert found["remedy"].startswith("no planned run is missing: sweep again")
    assert found["cells"] == [{"rate": 200.0, "variant": "b", "load_model": "open", "generator": "vegeta"}]


@pytest.mark.parametrize(
    ("order", "said"),
    [({"kind": "fixed"}, "in a fixed order"), ({"kind": None}, "order of 5 of 10 runs is not recorded")],
)
def test_fixed_or_unknown_order(project, order, said):
    write(project, "a", 5, order=order)
    write(project, "b", 5)
    found = one(project, "fixed_order")
    assert said in found["text"] and (found["weight"], found["n"], found["n_of"]) == ("limits", 5, 10)


def test_an_order_of_one_variant_is_none(project):
    write(project, "a", 5, order={"kind": "fixed"})
    assert claims(project) == []


def test_warm_up_inside_and_drifting_runs(project):
    slow = [settled(2e6, seed) * (1 + 5 * np.exp(-np.arange(1000) / 80)) for seed in range(5)]
    drifting = [(settled(3e6, seed) * np.linspace(1, 3, 1000)).astype(int) for seed in range(5)]
    write(project, "a", slow)
    write(project, "b", drifting)
    found = {row["claim"]: row for row in claims(project)}
    assert {"warmup_inside", "unsettled"} <= found.keys()
    warming = found["warmup_inside"]
    assert (warming["weight"], warming["variant"], warming["n"], warming["n_of"]) == ("serious", "a", 5, 10)
    unsettled = found["unsettled"]
    assert (unsettled["weight"], unsettled["variant"], unsettled["n"]) == ("serious", "b", 5)
    assert "5 drifting up" in unsettled["text"]


def test_one_drifting_run_of_many_is_no_serious_one(project):
    runs = [settled(2e6, seed) for seed in range(5)]
    runs[2] = (runs[2] * np.linspace(1, 3, 1000)).astype(int)
    write(project, "a", runs)
    assert one(project, "unsettled")["weight"] == "limits"


def test_late_requests(project):
    for variant in "ab":
        write(project, variant, 5)
    limit = {"time_ns": -1.0, "share": -1.0}  # any lag is beyond it
    found = one(project, "generator_limited", lag_limit=limit)
    assert (found["weight"], found["n"], found["n_of"]) == ("serious", 10, 10)


def test_runs_left_out_by_variant(project):
    write(project, "a", 6)
    write(project, "b", 6)
    tags = [{"tag": "FAILED", "reason": "why", "variant": "b", "run": str(run)} for run in (1, 2)]
    found = one(project, "excluded", tags=tags, excluding=["FAILED"])
    assert (found["weight"], found["n"], found["n_of"]) == ("serious", 2, 12)
    assert "“b” 2 of 6 and “a” 0 of 6" in found["text"]


def test_a_percentile_beyond_the_sample(project):
    short = [settled(2e6, seed, requests=100) for seed in range(5)]
    write(project, "a", short)
    found = one(project, "unsupported")
    assert (found["statistic"], found["variant"]) == ("p99", "a")
    assert found["text"] == "p99 needs 1,000 requests, but there are as few as 500 of “a” at 200 requests/s."


def test_failures_and_timeouts(project):
    latencies = settled(2e6, 1)
    latencies[-100:] = int(2e9)
    write(project, "a", [latencies] * 1, code=0, error="context deadline exceeded (Client.Timeout exceeded)")
    found = {row["claim"]: row for row in claims(project)}
    assert "Up to 100 % of the requests of “a” at 200 requests/s failed" in found["failures"]["text"]
    assert found["failures"]["weight"] == "limits", "timeouts are no fast requests"
    assert found["timeouts"]["statistic"] is None
    assert "1,000 requests of “a” at 200 requests/s timed out" in found["timeouts"]["text"]


def test_many_failures_that_end_at_once_are_serious_and_timeouts_are_not(project):
    """As fast as `a` where it answers, `b` refuses every tenth request at once."""
    write(project, "a", 5)
    files = {}
    for run in range(1, 6):
        latencies = settled(2e6, ord("a") + run - 1)
        sent = lines(latencies, 200.0).splitlines(keepends=True)
        for seq in range(0, len(sent), 10):
            at_ns = rawfiles.START_NS + round(seq * 1e9 / 200)
            sent[seq] = rawfiles.line(seq, 100_000, sent_ns=at_ns, code=503, error="503 Service Unavailable")
        files[f"{run}.results.json.zst"] = rawfiles.compress(b"".join(sent))
    options = {"rate": "200", "duration": "5s", "timeout": "2s"}
    write_cell(project.archive, files, rate="200", variant="b", order=BLOCKS, runs=5, testOptions=options)
    found = one(project, "failures")
    assert found["weight"] == "serious" and [cell["variant"] for cell in found["cells"]] == ["b"]
    assert "10 % of the requests of “b” at 200 requests/s failed" in found["text"]
    effects = project.rows("SELECT * FROM effects WHERE comparison IS NULL")
    assert {row["verdict"] for row in effects if row["statistic"] == "mean"} == {"faster"}
    marked = {row["statistic"]: row["caveats"] for row in with_caveats(effects, [found])}
    assert marked == {name: ["failures"] for name in LATENCIES} | {ERRORS: []}


def test_a_coarse_clock_and_differences_below_its_step(project):
    for variant in "ab":
        periods = [[9.0] * 3, [8.0] * 4, [2.0] * 5, [2.0] * 5]
        files = {f"{run}.artillery.json": foreign.artillery(periods) for run in (1, 2)}
        described = {"testMode": "artillery", "generator": {"name": "artillery"}, "loadModel": "open"}
        write_cell(project.archive, files, rate="1", variant=variant, order=BLOCKS, testOptions={}, **described)
    found = {row["claim"]: row for row in claims(project)}
    assert (
        "whole steps of 1 ms, and the median of every variant at 1 requests/s is only 2 steps"
        in found["coarse_clock"]["text"]
    )
    below = found["below_a_step"]
    assert (below["weight"], below["variant"], below["rate"]) == ("serious", "b", 1)
    assert below["text"].startswith("“b” and “a” differ by less than the clock's step of 1 ms in mean and median")
    assert found["lag_unknown"]["weight"] == "note"


@pytest.mark.parametrize(
    ("level_ms", "said"),
    [
        (0.0, "is less than one step: finer"),
        (1.0, "is only 1 step: finer"),
        (7.0, "is only 7 steps: finer"),
    ],
)
def test_a_median_is_said_in_steps_of_a_coarse_clock(project, level_ms, said):
    files = {f"{run}.artillery.json": foreign.artillery([[level_ms] * 5] * 4) for run in (1, 2)}
    described = {"testMode": "artillery", "generator": {"name": "artillery"}, "loadModel": "open"}
    write_cell(project.archive, files, rate="1", variant="a", order=BLOCKS, testOptions={}, **described)
    assert said in one(project, "coarse_clock")["text"]


def test_latencies_of_0_by_a_fine_clock_are_no_coarse_clock_but_a_fault(project):
    write(project, "a", [np.zeros(1000, int)] * 5)
    found = {row["claim"]: row for row in claims(project)}
    assert "coarse_clock" not in found
    assert found["zeros"]["weight"] == "serious"
    assert found["zeros"]["text"].startswith("The median latency of “a” at 200 requests/s is 0, which is impossible")


def test_campaigns_far_apart_hosts_and_versions_in_a_comparison(project):
    stamps = ("2026-11-21T11:00:00+00:00", "2026-12-21T11:00:00+00:00")
    for number, stamp in enumerate(stamps):
        for variant in "ab":
            write(project, variant, 5, timestamp=stamp, planned=5)
        for path in project.archive.rglob("metadata.json"):
            if stamp in str(path):
                text = path.read_text().replace('"version": "5"', f'"version": "5", "tools": {{"envoy": "1.{number}"}}')
                path.write_text(text)
    project.make()
    campaigns = list(archive.campaigns(project.archive))
    asked = Comparison("both", "Both", "demo", ("here",), stamps)
    compare(asked, campaigns, project.tables)
    found = {row["claim"]: row for row in project.rows("SELECT * FROM claims WHERE comparison = 'both'")}
    assert found.keys() == {"far_apart", "tool_versions"}
    assert "30 days apart" in found["far_apart"]["text"]
    assert found["tool_versions"]["text"] == "envoy had 2 versions: 1.0 and 1.1."
    assert found["far_apart"]["timestamps"] == sorted(stamps)


def test_patterns_of_a_comparison_leave_runs_out(project):
    for variant in "ab":
        write(project, variant, 6)
    project.make()
    campaigns = list(archive.campaigns(project.archive))
    asked = Comparison("less", "Less", "demo", ("here",), (rawfiles.TIMESTAMP,), exclude=("*/b/1.*",))
    compare(asked, campaigns, project.tables)
    found = {row["claim"]: row for row in project.rows("SELECT * FROM claims WHERE comparison = 'less'")}
    assert (found["excluded"]["n"], found["excluded"]["n_of"]) == (1, 12)
    assert found["excluded"]["text"].startswith("1 of 12 runs is not compared (8.33 %)")
    assert "unbalanced" in found


STAMPS = ("2026-11-21T11:00:00+00:00", "2026-11-22T11:00:00+00:00")


def joined(project, levels: dict[str, tuple[float, ...]], runs: int = 4) -> dict[str, dict]:
    """Claims on a comparison of both campaigns, where variants have these levels in ms; none was measured at 0."""
    for variant, of_campaigns in levels.items():
        for number, (stamp, level) in enumerate(zip(STAMPS, of_campaigns, strict=True)):
            seeds = [1000 * number + 100 * ord(variant) + run for run in range(runs)]
            if level:
                write(project, variant, [settled(level * 1e6, seed) for seed in seeds], timestamp=stamp)
    project.make()
    asked = Comparison("both", "Both", "demo", ("here",), STAMPS)
    compare(asked, list(archive.campaigns(project.archive)), project.tables)
    return {row["claim"]: row for row in project.rows("SELECT * FROM claims WHERE comparison = 'both'")}


def test_campaigns_that_agree(project):
    assert not joined(project, {"a": (2, 2), "b": (3, 3)}).keys() - {"few_runs"}


def test_campaigns_of_different_levels_and_the_same_difference(project):
    found = joined(project, {"a": (2, 4), "b": (3, 6)})["campaigns_disagree"]
    assert (found["weight"], found["n"], found["n_of"]) == ("limits", 2, 2)
    assert "disagree on every variant at 200 requests/s" in found["text"]
    assert STAMPS[0] in found["text"] and STAMPS[1] in found["text"] and "too narrow" in found["text"]


def test_campaigns_of_different_differences(project):
    found = joined(project, {"a": (2, 2), "b": (2.4, 4)})["campaigns_disagree"]
    assert (found["weight"], found["variant"], found["n"]) == ("serious", "b", 1)
    assert "on the difference of “b” at 200 requests/s from “a”" in found["text"]
    assert f"times in {STAMPS[0]} and " in found["text"]


def campaigns(project, runs: dict[tuple[str, str], list[np.ndarray]], **fields) -> list[dict]:
    """Claims on a comparison of both campaigns, where variants have these runs."""
    for (stamp, variant), latencies in runs.items():
        write(project, variant, latencies, timestamp=stamp, **fields)
    project.make()
    asked = Comparison("both", "Both", "demo", ("here",), STAMPS, baseline="a")
    compare(asked, list(archive.campaigns(project.archive)), project.tables)
    return project.rows("SELECT * FROM claims WHERE comparison = 'both' AND claim = 'campaigns_disagree'")


def test_campaigns_that_disagree_by_pairs_of_runs(project):
    """Blocks drift by a third, both variants with them: 1.1 times as long in one campaign, 1.6 times in the other."""
    drawn = np.random.default_rng(5)
    runs = {}
    for stamp, ratio in zip(STAMPS, (1.1, 1.6), strict=True):
        blocks = 2e6 * np.exp(0.4 * drawn.normal(size=5))
        for variant, factor in (("a", 1), ("b", ratio)):
            runs[stamp, variant] = [settled(level * factor, int(seed)) for seed, level in enumerate(blocks)]
    (found,) = campaigns(project, runs)
    assert (found["weight"], found["variant"]) == ("serious", "b")
    assert f"is 1.1 times in {STAMPS[0]} and 1.6 times in {STAMPS[1]}" in found["text"]


def test_campaigns_that_disagree_where_the_runs_of_each_are_equal(project):
    def equal(level_ms):
        return [np.full(500, level_ms * 1_000_000)] * 5

    a, b = STAMPS
    found = campaigns(project, {(a, "a"): equal(2), (a, "b"): equal(2), (b, "a"): equal(2), (b, "b"): equal(20)})
    assert [(row["weight"], row["variant"]) for row in found] == [("serious", "b")]
    assert f"1 times in {a} and 10 times in {b}" in found[0]["text"]


def test_equal_campaigns_of_equal_runs_agree(project):
    runs = {(stamp, variant): [np.full(500, 2_345_678)] * 5 for stamp in STAMPS for variant in "ab"}
    assert campaigns(project, runs) == []


def test_campaigns_that_disagree_by_failures_alone(project):
    """In one campaign 6 of 10 requests of a variant time out: no run of it has a mean of its own."""
    for stamp in STAMPS:
        for variant in "ab":
            some = {"code": 0, "error": "context deadline exceeded"} if (stamp, variant) == (STAMPS[1], "b") else {}
            files = {}
            for run in range(1, 6):
                content = b"".join(
                    line(seq, 2_000_000_000, sent_ns=rawfiles.START_NS + seq * 5_000_000, **some)
                    if some and seq % 10 < 6
                    else line(seq, int(latency), sent_ns=rawfiles.START_NS + seq * 5_000_000)
                    for seq, latency in enumerate(settled(2e6, run, 300))
                )
                files[f"{run}.results.json.zst"] = rawfiles.compress(content)
            options = {"rate": "200", "duration": "1.5s", "timeout": "2s"}
            write_cell(
                project.archive, files, rate="200", variant=variant, at=stamp, order=BLOCKS, runs=5, testOptions=options
            )
    (found,) = campaigns(project, {})
    assert (found["weight"], found["variant"], found["statistic"]) == ("serious", "b", ERRORS)
    assert f"the difference in the share of failures is +0 points in {STAMPS[0]} and +60 points" in found["text"]


def test_a_planned_load_without_any_result(project):
    for variant in "ab":
        write(project, variant, 5)
        write_cell(project.archive, {}, rate="400", variant=variant, order=BLOCKS, runs=5)
    found = one(project, "unfinished")
    assert (found["weight"], found["n"], found["n_of"], found["rate"]) == ("limits", 10, 20, 400)
    assert found["text"] == "10 of 20 planned runs are missing, at 400 requests/s."
    assert found["cells"] == []


def test_a_planned_load_that_a_comparison_does_not_ask_for_is_not_missing(project):
    for variant in "ab":
        write(project, variant, 5)
        write_cell(project.archive, {}, rate="400", variant=variant, order=BLOCKS, runs=5)
    project.make()
    for name, rates in (("less", (200.0,)), ("all", ())):
        asked = Comparison(name, name, "demo", ("here",), (rawfiles.TIMESTAMP,), rates=rates)
        compare(asked, list(archive.campaigns(project.archive)), project.tables)
    found = project.rows("SELECT comparison FROM claims WHERE claim = 'unfinished' AND comparison IS NOT NULL")
    assert found == [{"comparison": "all"}]


def test_replicas_strike_only_what_is_set_beside_others(project):
    for variant in "abx":
        write(project, variant, 5, about={"test_replicas": 4 if variant == "x" else 1})
    found = one(project, "replicas")
    assert found["weight"] == "serious" and {cell["variant"] for cell in found["cells"]} == {"x"}
    assert found["text"] == (
        "The number of replicas differs: 1 in 10 runs and 4 in 5 runs; this concerns “x” at 200 requests/s."
    )
    rows = project.rows("FROM effects WHERE comparison IS NULL AND statistic = 'mean'")
    told = with_caveats(rows, project.rows("FROM claims WHERE comparison IS NULL"))
    assert {row["variant"]: row["caveats"] for row in told} == {"b": [], "x": ["replicas"]}


def test_variants_whose_requests_were_sent_otherwise_than_those_of_the_baseline_are_struck(project):
    paced = {"name": "vegeta", "program": "paced"}
    for variant, generator in (("a", paced), ("b", paced), ("x", paced | {"count": 4, "connections": 8})):
        write(project, variant, 5)
        (path,) = project.archive.glob(f"*/*/*/200/{variant}/metadata.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"generator": generator}))
    found = one(project, "sent_by")
    assert found["weight"] == "serious" and {cell["variant"] for cell in found["cells"]} == {"x"}
    assert found["text"] == (
        "Requests were sent in 2 ways: by 4 of paced over 8 connections with 5 runs and paced with 10 runs; "
        "this concerns “x” at 200 requests/s."
    )


def test_other_numbers_of_load_generators_of_one_process_are_only_a_limit(project):
    for variant, count in (("a", 1), ("b", 1), ("x", 4)):
        write(project, variant, 5)
        (path,) = project.archive.glob(f"*/*/*/200/{variant}/metadata.json")
        generator = {"name": "vegeta", "program": "paced", "count": count, "connections": 4}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"generator": generator}))
        senders = [{"generator": each, "process": 0, "processor": 1} for each in range(count)]
        for run in range(1, 6):
            (path.parent / f"{run}.run.json").write_text(json.dumps({"generators": senders}))
    found = one(project, "numbers_of_generators")
    assert found["weight"] == "limits" and {cell["variant"] for cell in found["cells"]} == {"x"}
    assert found["text"].startswith(
        "Requests were sent by 1 of paced over 4 connections with 10 runs and 4 of paced over 4 connections with 5 "
        "runs; this concerns “x” at 200 requests/s: in one process and over as many connections, four load generators "
        "measured 1.007 times the median latency of one"
    )
    assert not project.rows("FROM claims WHERE claim = 'sent_by'")


def test_failures_of_one_tool_do_not_strike_what_another_measured(project):
    other = "2026-11-22T11:00:00+00:00"
    for variant, level_ms in (("a", 2), ("b", 6)):
        files = {
            f"{run}.k6.json.zst": rawfiles.compress(
                foreign.k6_json([level_ms + 0.01 * run + 0.001 * n for n in range(50)])
            )
            for run in range(1, 6)
        }
        described = {"testMode": "k6", "generator": {"name": "k6"}, "loadModel": "open", "order": BLOCKS, "runs": 5}
        options = {"rate": "1", "duration": "50s"}
        write_cell(project.archive, files, rate="1", variant=variant, at=other, testOptions=options, **described)
        failing = {"code": 503, "error": "503 Service Unavailable"} if variant == "a" else {}
        write(project, variant, [settled(level_ms * 1e6, seed, 50) for seed in range(5)], rate="1", **failing)
    project.make()
    allowed = frozenset({"generators"})
    asked = Comparison("tools", "T", "demo", ("here",), (rawfiles.TIMESTAMP, other), allow=allowed, baseline="a")
    compare(asked, list(archive.campaigns(project.archive)), project.tables)
    (found,) = project.rows("FROM claims WHERE comparison = 'tools' AND claim = 'failures'")
    assert [cell["generator"] for cell in found["cells"]] == ["vegeta"]
    rows = project.rows("FROM effects WHERE comparison = 'tools' AND statistic = 'mean'")
    marked = {row["generator"]: "failures" in row["caveats"] for row in with_caveats(rows, [found])}
    assert marked == {"k6": False, "vegeta": True}


def test_two_runs_far_from_each_other(project):
    for variant in "ab":
        write(project, variant, [settled(2e6, 1), settled(6e6, 2)])
    found = one(project, "outlying_runs")
    assert found["text"].startswith("The two runs of every variant at 200 requests/s are far apart, beyond")
    assert (found["n"], found["n_of"], found["counted"]) == (2, 2, "cells")


def test_a_run_that_starts_slowly_after_a_warm_up(project):
    slow = settled(2e6, 1) * (1 + 5 * np.exp(-np.arange(1000) / 80))
    write(project, "a", [slow, *(settled(2e6, seed) for seed in range(2, 6))])  # after 1 s of warm-up
    found = one(project, "warmup_inside")
    assert found["weight"] == "limits" and "1 of 5 runs is still warming up" in found["text"]
    assert found["remedy"].startswith("use a longer warm-up")


def test_variants_of_different_campaigns(project):
    found = joined(project, {"a": (2, 2), "b": (0, 3)})
    assert "“b” and “a” are from different campaigns at 200 requests/s" in found["other_campaigns"]["text"]
    assert "campaigns_disagree" not in found


def test_a_run_far_from_its_siblings_that_counts(project):
    runs = [settled(2e6, seed) for seed in range(5)]
    write(project, "a", [*runs[:4], settled(6e6, 4)])
    write(project, "b", 5)
    found = one(project, "outlying_runs")
    assert (found["weight"], found["variant"], found["n"], found["n_of"]) == ("limits", "a", 1, 10)
    assert "1 run of “a” at 200 requests/s (run 5) is far from the others" in found["text"]


def test_beyond_the_knee(project):
    for rate in ("100", "200"):
        write(project, "a", 5, rate=rate)
    overloaded = [np.linspace(2e6, 8e8, 1000).astype(int) + seed for seed in range(5)]
    write(project, "a", overloaded, rate="300")
    found = one(project, "beyond_knee")
    assert (found["variant"], found["rate"], found["n"], found["n_of"]) == ("a", 300, 1, 3)
    # All of its requests were answered, only not in time: "fewer requests were answered" would not be so.
    assert "fewer requests per second succeeded than were sent" in found["text"]


def test_what_is_looked_for_is_plain_text():
    """Pages show these words as they are: marks of Markdown would stand there."""
    assert not [claim.id for claim in CAVEATS.values() if "`" in claim.heading + claim.when + claim.remedy]


def test_every_lint_is_of_a_declared_claim_and_hostile_names_stay_text(project):
    name = "<b>&'"
    write(project, name, [settled(2e6, 1)])
    assert name in one(project, "one_run")["text"]
