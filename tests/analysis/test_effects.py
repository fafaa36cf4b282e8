"""Variants against a baseline: the same figures as plain numpy and scipy, verdicts, and why there is none."""

import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.percentiles import LATENCIES
from scipy import stats as scipy_stats
from support import foreign, rawfiles
from support.rawfiles import lines, write_cell

RATE = "1000"
BLOCKS = {"kind": "blocks", "positions": [1, 2, 3, 4]}


def write(project, variant, runs, *, rate=RATE, order=None, **fields) -> None:
    """Runs of a variant, each an array of latencies."""
    files = {
        f"{number}.results.json.zst": rawfiles.compress(lines(latencies, float(rate), **fields))
        for number, latencies in enumerate(runs, start=1)
    }
    changes = {"order": order or BLOCKS, "runs": len(runs)}
    duration = {"rate": rate, "duration": f"{len(runs[0]) / float(rate):g}s", "timeout": "2s"}
    write_cell(project.archive, files, rate=rate, variant=variant, testOptions=duration, **changes)


def levels(runs: int, level_ns: float, seed: int, spread: float = 0.01, requests: int = 1000) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [
        (level_ns * np.exp(spread * generator.normal() + 0.1 * generator.normal(size=requests))).astype(int)
        for _ in range(runs)
    ]


def effects(project, settings: Settings | None = None) -> dict[tuple[str, str], dict]:
    """Rows of the campaign's own scope by variant and statistic."""
    project.convert()
    for campaign in archive.campaigns(project.archive):
        analyse_campaign(campaign, project.tables, settings=settings or Settings())
    rows = project.rows("SELECT * FROM effects WHERE comparison IS NULL")
    return {(row["variant"], row["statistic"]): row for row in rows}


def test_an_effect_equals_plain_numpy_and_scipy(project):
    """Runs of one latency each leave nothing but their levels, for which there is a textbook."""
    generator = np.random.default_rng(1)
    first, second = ((level * np.exp(0.03 * generator.normal(size=6))).astype(int) for level in (2e6, 2.4e6))
    write(project, "a", [np.full(100, level) for level in first], rate="100", order={"kind": "fixed"})
    write(project, "b", [np.full(100, level) for level in second], rate="100", order={"kind": "fixed"})
    found = effects(project)
    mean = found["b", "mean"]
    assert (mean["baseline_value"], mean["value"]) == pytest.approx((first.mean(), second.mean()))
    assert mean["shift"] == pytest.approx(second.mean() - first.mean())
    assert mean["ratio"] == pytest.approx(second.mean() / first.mean())
    expected = scipy_stats.ttest_ind(np.log(second), np.log(first), equal_var=False)
    bounds = expected.confidence_interval(0.95)
    assert [mean["ratio_low"], mean["ratio_high"]] == pytest.approx(np.exp([bounds.low, bounds.high]), rel=0.02)
    assert (mean["verdict"], mean["n_runs"], mean["baseline_n_runs"], mean["n_pairs"]) == ("slower", 6, 6, None)
    tested = [row for row in found.values() if row["p_adjusted"] is not None]
    assert mean["p_adjusted"] <= min(1, len(tested) * expected.pvalue * 5)
    assert {row["n_compared"] for row in found.values()} == {len(tested)} == {3}
    p50 = found["b", "p50"]
    assert p50["value"] == pytest.approx(np.quantile(np.repeat(second, 100), 0.5))


def test_runs_of_a_sweep_by_blocks_go_by_pairs(project):
    block = 0.3 * np.random.default_rng(2).normal(size=4)
    for variant, factor in (("a", 1.0), ("b", 1.1)):
        runs = levels(4, 2e6 * factor, ord(variant), spread=0.002)
        write(project, variant, [(run * np.exp(level)).astype(int) for run, level in zip(runs, block, strict=True)])
    found = effects(project)["b", "mean"]
    assert found["n_pairs"] == 4
    assert 1.05 < found["ratio_low"] < 1.1 < found["ratio_high"] < 1.15
    assert (found["verdict"], found["why"]) == ("slower", None)


@pytest.mark.parametrize("order", [{"kind": "fixed"}, BLOCKS])
def test_runs_without_partners_do_not(project, order):
    write(project, "a", levels(3, 2e6, 1), order=order)
    write(project, "b", levels(4 if order == BLOCKS else 3, 3e6, 2), order=order)
    assert effects(project)["b", "mean"]["n_pairs"] is None


def test_verdicts_of_clear_cases(project):
    for variant, level_ns, seed in (("a", 2e6, 1), ("b", 4e6, 2), ("c", 1e6, 3), ("d", 2e6, 4)):
        write(project, variant, levels(6, level_ns, seed, spread=0.003))
    found = effects(project)
    for statistic in LATENCIES:
        assert [found[variant, statistic]["verdict"] for variant in "bc"] == ["slower", "faster"], statistic
        assert statistic == "p99" or found["d", statistic]["verdict"] == "equivalent", statistic
    assert not [row for row in found.values() if row["variant"] == "a"]
    for row in found.values():
        if row["verdict"] in ("slower", "faster"):
            assert row["p_adjusted"] <= 0.05 and (row["ratio_low"] > 1 or row["ratio_high"] < 1)
        if row["verdict"] == "equivalent":
            assert row["p_equivalent_adjusted"] <= 0.05 and 1 / 1.05 < row["ratio_low"] < row["ratio_high"] < 1.05


def test_a_wider_margin_calls_more_equivalent(project):
    write(project, "a", levels(5, 2e6, 1, spread=0.02))
    write(project, "b", levels(5, 2.05e6, 2, spread=0.02))
    assert effects(project)["b", "mean"]["verdict"] == "inconclusive"
    wide = effects(project, Settings(margin=0.3))["b", "mean"]
    assert (wide["verdict"], wide["margin"], wide["confidence"]) == ("equivalent", 0.3, 0.95)


def test_what_variants_are_built_upon_changes_no_verdict_beside_the_baseline(project):
    """Steady layers would make a page too sure of variants beside a baseline that is not steady."""
    for variant, spread, seed in (("a", 0.1, 1), ("b", 0.01, 2), ("c", 0.01, 3), ("d", 0.01, 4)):
        write(project, variant, levels(3, 2e6, seed, spread=spread, requests=200), rate="200")
    over = {"b": ["a"], "c": ["b"], "d": ["b", "c"]}
    assert effects(project, Settings(order=tuple("abcd"), over=over)) == effects(project)


def test_what_cannot_be_told_says_how_many_runs_it_takes(project):
    write(project, "a", levels(3, 2e6, 1, spread=0.1))
    write(project, "b", levels(3, 2.2e6, 2, spread=0.1))
    found = effects(project)["b", "mean"]
    assert (found["verdict"], found["why"]) == ("inconclusive", "the runs vary too much")
    assert found["runs_needed"] > 3
    assert found["p_adjusted"] > 0.05


def test_one_run_each_tells_nothing_for_certain(project):
    write(project, "a", levels(1, 2e6, 1))
    write(project, "b", levels(1, 3e6, 2))
    found = effects(project)["b", "mean"]
    assert (found["verdict"], found["shift_low"], found["ratio_low"], found["p_adjusted"]) == (
        "inconclusive",
        *[None] * 3,
    )
    assert found["ratio"] == pytest.approx(1.5, rel=0.05)
    about = f"about {found['runs_needed']} runs are needed if they differ by 5 % (one standard deviation)"
    assert found["why"] == f"one run: the spread between runs is unknown; {about}"
    assert found["runs_needed"] >= 3


@pytest.mark.parametrize("order", [BLOCKS, {"kind": "fixed"}])
@pytest.mark.parametrize(("runs", "enough"), [((2, 2), False), ((2, 3), False), ((2, 4), True), ((3, 3), True)])
def test_two_runs_of_each_decide_nothing_however_alike_they_are(project, runs, enough, order):
    """An interval and the number of runs that a verdict takes are there all the same."""
    for variant, number, level_ns in zip("abc", (*runs, runs[1]), (2_000_000, 6_000_000, 2_000_050), strict=True):
        write(project, variant, [np.full(1000, level_ns + 100 * run) for run in range(number)], order=order)
    found = effects(project)
    slower, equal = found["b", "mean"], found["c", "mean"]
    assert slower["ratio_low"] > 1 and equal["ratio_high"] < 1.05
    if enough:
        assert (slower["verdict"], equal["verdict"]) == ("slower", "equivalent")
        return
    for row in (slower, equal):
        assert (row["verdict"], row["p_adjusted"], row["n_compared"]) == ("inconclusive", None, 0)
        (reason,) = row["reasons"]
        assert (reason["code"], reason["value"], reason["needed"]) == ("few_runs", sum(runs), 3)
        assert row["why"].startswith(f"{sum(runs)} runs of both variants are too few for a verdict")
        assert 3 <= row["runs_needed"] <= 5


def test_two_runs_of_which_all_failed_are_no_more_failures(project):
    write(project, "a", levels(2, 2e6, 1))
    write(project, "b", levels(2, 2e6, 2), code=503, error="503 Service Unavailable")
    found = effects(project)["b", "error_fraction"]
    assert (found["verdict"], found["reasons"][0]["code"]) == ("inconclusive", "few_runs")


def test_one_run_each_within_a_step_of_the_clock_names_no_number_of_runs(project):
    for variant in "ab":
        files = {"1.artillery.json": foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [2.0] * 5])}
        described = {"testMode": "artillery", "generator": {"name": "artillery"}, "loadModel": "open"}
        write_cell(project.archive, files, rate=RATE, variant=variant, testOptions={}, **described)
    found = effects(project)["b", "mean"]
    assert (found["verdict"], found["runs_needed"]) == ("inconclusive", None)
    assert found["why"] == (
        "one run: the spread between runs is unknown; at least 2 runs are needed; the shift is below the clock's "
        "resolution of 1 ms"
    )


def test_a_percentile_that_the_sample_cannot_support_says_what_it_takes(project):
    write(project, "a", levels(3, 2e6, 1, requests=50))
    write(project, "b", levels(3, 4e6, 2, requests=50))
    found = effects(project)["b", "p99"]
    assert (found["verdict"], found["value"], found["p_adjusted"]) == ("inconclusive", None, None)
    assert found["why"] == "too few requests: p99 needs 1,000, “a” has 150"


def test_failures_are_more_or_fewer(project):
    write(project, "a", levels(4, 2e6, 1))
    write(project, "b", levels(4, 2e6, 2), code=503, error="503 Service Unavailable")
    found = effects(project)["b", "error_fraction"]
    assert (found["baseline_value"], found["value"], found["verdict"]) == (0, 1, "more")
    assert (found["shift"], found["ratio"]) == (1, None)


def test_no_failure_at_all_is_nothing_to_judge(project):
    write(project, "a", levels(3, 2e6, 1))
    write(project, "b", levels(3, 2e6, 2))
    found = effects(project)["b", "error_fraction"]
    assert (found["verdict"], found["why"], found["shift"]) == (None, "no request failed on either side", 0)


@pytest.mark.parametrize("code", [503, 0])
def test_loads_at_which_everything_failed_on_both_sides_are_no_part_of_what_is_tested(project, code):
    for seed, (variant, level_ns) in enumerate((("a", 2e6), ("b", 4e6))):
        write(project, variant, levels(4, level_ns, seed))
        failed = {"code": code, "error": "503 Service Unavailable" if code else "context deadline exceeded"}
        write(project, variant, levels(4, 2e9, seed), rate="500", **failed)
    project.convert()
    for campaign in archive.campaigns(project.archive):
        analyse_campaign(campaign, project.tables, settings=Settings())
    rows = project.rows(
        "SELECT * FROM effects WHERE comparison IS NULL AND rate = 1000 AND statistic <> 'error_fraction'"
    )
    assert {row["verdict"] for row in rows} == {"slower"}
    (failures,) = project.rows("SELECT * FROM effects WHERE rate = 500 AND statistic = 'error_fraction'")
    assert failures["why"] == "every request failed on both sides"
    assert (failures["shift_low"], failures["p_adjusted"]) == (None, None)


def test_latencies_of_timeouts_are_never_taken_for_figures(project):
    late = [np.where(np.arange(1000) % 20 == 0, 0, run) for run in levels(3, 2e6, 2)]  # a tool may write 0 there
    write(project, "a", levels(3, 2e6, 1))
    write(project, "b", levels(3, 2e6, 2))
    cell = archive.Cell(next(archive.campaigns(project.archive)), RATE, "b")
    for number, run in enumerate(late, start=1):
        content = b"".join(
            rawfiles.line(
                seq,
                int(latency),
                sent_ns=rawfiles.START_NS + seq * 10**6,
                **({} if latency else {"code": 0, "error": "request timeout"}),
            )
            for seq, latency in enumerate(run)
        )
        (cell.path / f"{number}.results.json.zst").write_bytes(rawfiles.compress(content))
    found = effects(project)
    (stored,) = project.rows("SELECT * FROM cells WHERE variant = 'b'")
    assert [stored[f"{name}_censored"] for name in ("mean", "p50", "p90", "p99")] == [True, False, False, True]
    assert (stored["n_timeouts"], stored["p99_ns"]) == (150, 2e9)  # at least the two seconds of the metadata
    assert stored["mean_low_ns"] is None and stored["p50_low_ns"] is not None
    for name in ("mean", "p99"):
        assert found["b", name]["verdict"] == ("inconclusive" if name == "mean" else "slower")
        assert found["b", name]["why"].endswith("150 requests of “b” timed out, so only a lower bound is known")
    assert found["b", "p50"]["verdict"] is not None and found["b", "p50"]["p_adjusted"] is not None


def test_a_percentile_just_before_timeouts_is_known_but_not_how_far_it_moves(project):
    """All that timed out did in run 1: other runs like these might have p99 there."""
    write(project, "a", levels(3, 2e6, 1))
    write(project, "b", levels(3, 2e6, 2))
    cell = archive.Cell(next(archive.campaigns(project.archive)), RATE, "b")
    late = {"code": 0, "error": "request timeout"}
    requests = [
        rawfiles.line(seq, 2 * 10**6 + seq, sent_ns=rawfiles.START_NS + seq * 10**6, **(late if seq % 40 == 7 else {}))
        for seq in range(1000)
    ]
    (cell.path / "1.results.json.zst").write_bytes(rawfiles.compress(b"".join(requests)))
    found = effects(project)
    (stored,) = project.rows("SELECT * FROM cells WHERE variant = 'b'")
    assert (stored["p99_censored"], stored["p99_low_ns"], stored["p99_high_ns"]) == (False, None, None)
    assert stored["p99_ns"] < 10e6 and stored["p90_high_ns"] < 10e6
    p99 = found["b", "p99"]
    assert (p99["verdict"], p99["value"], p99["ratio_low"]) == ("inconclusive", stored["p99_ns"], None)
    assert p99["why"].startswith("in other runs like those of “b” p99 may reach the timeout")
    assert found["b", "p90"]["p_adjusted"] is not None


def test_throughput_is_what_was_answered_without_failure_per_second(project):
    write(project, "a", levels(3, 2e6, 1))
    write(project, "b", levels(3, 2e6, 2), code=503, error="503 Service Unavailable")
    slow = [np.linspace(1e6, 2e9, 1000).astype(int)] * 2  # the last answer comes two seconds late
    write(project, "c", slow)
    effects(project)
    found = {row["variant"]: row for row in project.rows("SELECT * FROM cells")}
    assert found["a"]["throughput"] == pytest.approx(1000, rel=2e-3)
    assert found["a"]["throughput_low"] <= found["a"]["throughput"] <= found["a"]["throughput_high"] <= 1001
    assert found["b"]["throughput"] == 0
    ends = np.arange(1000) * 1e6 + slow[0]
    assert found["c"]["throughput"] == pytest.approx((ends <= ends[0] + 1e9).sum(), rel=5e-3)


def test_a_comparison_names_its_baseline_and_its_margin(project):
    write(project, "a", levels(4, 2e6, 1))
    write(project, "b", levels(4, 4e6, 2))
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    declared = {"id": "one", "title": "One", "app": campaign.app, "hosts": (campaign.host,)}
    entry = Comparison(**declared, timestamps=(campaign.timestamp,), baseline="b", margin=0.2)
    compare(entry, [campaign], project.tables)
    rows = project.rows("SELECT * FROM effects WHERE comparison = 'one' AND statistic = 'mean'")
    assert [(row["baseline"], row["variant"], row["verdict"], row["margin"]) for row in rows] == [
        ("b", "a", "faster", 0.2)
    ]
    assert rows[0]["timestamps"] == [campaign.timestamp] and rows[0]["n_pairs"] == 4
    own = project.row("SELECT * FROM effects WHERE comparison IS NULL AND statistic = 'mean'")
    assert (own["baseline"], own["verdict"], own["ratio"]) == ("a", "slower", pytest.approx(1 / rows[0]["ratio"]))


def test_a_baseline_without_runs_gives_no_row(project):
    write(project, "a", levels(2, 2e6, 1))
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    entry = Comparison("x", "X", campaign.app, (campaign.host,), (campaign.timestamp,), baseline="gone")
    compare(entry, [campaign], project.tables)
    assert project.rows("FROM effects") == []


def test_reports_are_compared_by_their_runs(project):
    generator = np.random.default_rng(5)
    means = {"a": 5e6 * np.exp(0.02 * generator.normal(size=5)), "b": 7e6 * np.exp(0.02 * generator.normal(size=5))}
    for variant, of_runs in means.items():
        files = {
            f"{number}.vegeta.txt": foreign.VEGETA.replace("5.529ms", f"{mean / 1e6:.6f}ms").encode()
            for number, mean in enumerate(of_runs, start=1)
        }
        write_cell(project.archive, files, variant=variant)
    found = effects(project)
    row = found["b", "mean"]
    expected = scipy_stats.ttest_ind(means["b"] / means["b"].mean(), means["a"] / means["a"].mean(), equal_var=False)
    assert (row["evidence"], row["n_runs"], row["verdict"]) == ("reports", 5, "slower")
    assert row["ratio"] == pytest.approx(means["b"].mean() / means["a"].mean(), rel=1e-3)
    reach = scipy_stats.t.ppf(0.975, expected.df) * np.hypot(
        *(side.std(ddof=1) / side.mean() / np.sqrt(5) for side in means.values())
    )
    assert np.log(row["ratio_high"] / row["ratio"]) == pytest.approx(reach, rel=1e-2)
    assert found["b", "p99"]["why"] == "percentiles of several reports are never averaged"


def test_a_failure_or_two_among_reported_runs_are_no_difference(project):
    """One in each run of one variant, none of the other: both sides agree to the last digit."""
    failed = {"100.00%": "99.00%", "200:100": "200:99  503:1"}
    for variant, level in (("a", 5.1), ("b", 5.2)):
        files = {}
        for number in (1, 2):
            text = foreign.VEGETA.replace("5.529ms", f"{level + number / 100:.3f}ms")
            for before, after in failed.items() if variant == "b" else ():
                text = text.replace(before, after)
            files[f"{number}.vegeta.txt"] = text.encode()
        write_cell(project.archive, files, variant=variant)
    row = effects(project)["b", "error_fraction"]
    assert (row["baseline_value"], row["value"], row["evidence"]) == (0, pytest.approx(0.01), "reports")
    assert row["verdict"] == "inconclusive" and row["shift_low"] < 0 < row["shift_high"]
    assert row["shift_high"] - row["shift"] == pytest.approx(
        scipy_stats.t.ppf(0.975, 2) * np.sqrt(2 * 0.005 * 0.995 / 200), rel=1e-6
    )


def test_reported_runs_that_agree_to_the_last_digit_say_why_nothing_is_told(project):
    for variant, mean in (("a", "5.529ms"), ("b", "6.529ms")):
        content = foreign.VEGETA.replace("5.529ms", mean).encode()
        write_cell(project.archive, {f"{number}.vegeta.txt": content for number in (1, 2)}, variant=variant)
    row = effects(project)["b", "mean"]
    assert (row["verdict"], row["p_adjusted"]) == ("inconclusive", None)
    assert row["why"].startswith("the runs agree to the last reported digit")


def zeros_and(latency: float, requests: int) -> np.ndarray:
    """Requests of five runs, a little more than half of which take so long, the others 0; shape (5, requests)."""
    random = np.random.default_rng(3)
    return latency * (random.random((5, requests)) < 0.55 + 0.05 * random.normal(size=(5, 1)))


def test_a_median_that_may_be_0_in_other_runs_is_not_said_to_be_reported(project):
    for variant in "ab":
        write(project, variant, zeros_and(2e6, 400).astype(int))
    row = effects(project)["b", "p50"]
    assert (row["value"], row["verdict"], row["p_adjusted"]) == (2e6, "inconclusive", None)
    assert row["why"] == "in other runs like these p50 may be 0, which has no ratio"


def test_nor_is_it_where_the_clock_is_too_coarse(project):
    described = {"testMode": "artillery", "generator": {"name": "artillery"}, "loadModel": "open"}
    for variant in "ab":
        runs = zeros_and(1.0, 400).reshape(5, 4, 100)
        files = {f"{number}.artillery.json": foreign.artillery(run.tolist()) for number, run in enumerate(runs, 1)}
        write_cell(project.archive, files, rate=RATE, variant=variant, testOptions={}, **described)
    row = effects(project)["b", "p50"]
    assert (row["p_adjusted"], row["runs_needed"]) == (None, None)
    assert row["why"] == "the shift is below the clock's resolution of 1 ms"


def test_means_that_happen_to_be_equal_are_no_matter_of_a_fine_clock(project):
    for variant in "ab":
        runs = [np.full(1000, level) for level in (4_000_000, 5_000_000, 6_000_000)]
        write(project, variant, runs, order={"kind": "fixed"})
    row = effects(project)["b", "mean"]
    assert (row["shift"], row["verdict"], row["why"]) == (0, "inconclusive", "the runs vary too much")
    assert row["runs_needed"] is None or row["runs_needed"] > 3


def test_a_difference_below_the_step_of_a_coarse_clock_says_so(project):
    header = foreign.HEY.splitlines()[0]
    described = {"testMode": "hey", "generator": {"name": "hey"}, "loadModel": "closed", "order": None, "users": 3}
    for variant in "ab":
        files = {}
        for number, level in enumerate(("0.0040", "0.0060"), start=1):
            rows = [f"{level},0.0000,0.0000,0.0000,{level},0.0000,200,{n / 100:.4f}" for n in range(100)]
            files[f"{number}.hey.csv"] = "\n".join([header, *rows, ""]).encode()
        write_cell(project.archive, files, rate="3", variant=variant, testOptions={}, **described)
    row = effects(project)["b", "mean"]
    assert row["why"] == "the shift is below the clock's resolution of 0.1 ms"


def test_a_percentile_among_timeouts_is_slower_than_one_that_is_known(project):
    """By how much nobody knows, but what at least."""
    write(project, "a", levels(3, 2e6, 1))
    files = {}
    for number in (1, 2, 3):
        content = b""
        for seq in range(1000):
            sent_ns = rawfiles.START_NS + seq * 10**6
            if seq % 20 == 7:
                content += rawfiles.line(seq, 10**9, sent_ns=sent_ns, code=0, error="request timeout")
            else:
                content += rawfiles.line(seq, 2 * 10**6 + 100 * seq, sent_ns=sent_ns)
        files[f"{number}.results.json.zst"] = rawfiles.compress(content)
    options = {"rate": RATE, "duration": "1s", "timeout": "1s"}
    write_cell(project.archive, files, rate=RATE, variant="b", testOptions=options, runs=3, order=BLOCKS)
    found = effects(project)["b", "p99"]
    assert (found["verdict"], found["value"], found["shift"], found["ratio"]) == ("slower", None, None, None)
    assert found["p_adjusted"] < 0.05 and found["p_equivalent_adjusted"] is None
    bound, timeouts = found["reasons"]
    assert bound["code"] == "at_least" and 100 < bound["value"] < 1e9 / found["baseline_value"]
    assert (timeouts["code"], timeouts["variant"], timeouts["value"]) == ("timeouts", "b", 150)
    assert found["why"].endswith("150 requests of “b” timed out, so only a lower bound is known")
