"""The gate: seldom wrong where nothing changed, and able to see what did."""

import json
import math

import numpy as np
import pytest
from loadstone import archive, config
from loadstone.analysis import gate, history
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.gate_outcome import INCONCLUSIVE, NO_WORSE, WORSE, GateOutcome, Options
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.stats.bootstrap import t_factor
from support import rawfiles
from support.simulated import history_cell
from tables.tabling import Project

TIMES = [f"2026-{month:02d}-01T12:00:00+00:00" for month in range(1, 13)]


def options(**declared) -> Options:
    checked = config.check({"archive": "a", "tables": "t/t", "reports": "r", "gate": declared})
    return Options.from_config(checked["gate"])


# --- simulated campaigns ---------------------------------------------------------------------------------------------


def cells(random, timestamp: str, factor: float, *, count: int = 10, runs: int = 5, within: float = 0.05, between=0.0):
    """Cells of one campaign: p50 and p99 of `count` rates, each with the interval that its runs give."""
    made = []
    for rate in range(1, count + 1):
        cell = history_cell(timestamp, float(rate)) | {"n_runs": runs, "n_requests": 10_000}
        for name, base in (("p50", 1e7), ("p99", 3e7)):
            of_runs = np.log(base * factor) + random.normal(0, between) + random.normal(0, within, runs)
            reach = t_factor(0.95, runs - 1) * of_runs.std(ddof=1) / math.sqrt(runs)
            value = of_runs.mean()
            bounds = {"": value, "_low": value - reach, "_high": value + reach}
            cell |= {f"{name}{end}_ns": float(np.exp(each)) for end, each in bounds.items()}
        made.append(cell)
    return made


def outcome(earlier, later, chosen: Options) -> str:
    # `history.measured` gives cells in this order.
    ordered = sorted([*earlier, *later], key=lambda cell: (cell["rate"], cell["timestamp"]))
    key = ("demo", "here", later[0]["timestamp"])
    return GateOutcome(gate.judge_cells(ordered, [], {key}, chosen), chosen).outcome


def share(wanted: str, times: int, chosen: Options, factor: float, before: int = 1, **how) -> float:
    """How often campaigns that are slower by `factor` than `before` others come to an outcome."""
    random = np.random.default_rng([times, before, round(factor * 100)])
    found = []
    for _ in range(times):
        earlier = [cell for at in range(before) for cell in cells(random, TIMES[at], 1.0, **how)]
        found.append(outcome(earlier, cells(random, TIMES[before], factor, **how), chosen))
    return found.count(wanted) / times


SIMULATED = {"statistics": ["p50", "p99"]}


def test_equal_campaigns_are_seldom_called_slower_even_when_nothing_is_allowed():
    # Twenty figures each; of 400 gates, 20 would be the nominal 5 %, and 33 come by chance once in 300 times.
    assert share(WORSE, 400, options(**SIMULATED, ratio=1.0), 1.0) <= 0.08


def test_a_campaign_that_is_slower_by_just_what_is_allowed_is_seldom_called_slower():
    assert share(WORSE, 400, options(**SIMULATED, ratio=1.1), 1.1) <= 0.08


def test_nor_is_it_called_no_worse():
    """Each of twenty figures would have to be so by chance."""
    assert share(NO_WORSE, 400, options(**SIMULATED, ratio=1.1), 1.1) <= 0.01


@pytest.mark.parametrize(("factor", "least"), [(1.3, 0.9), (1.5, 0.99)])
def test_a_slower_campaign_is_found(factor, least):
    assert share(WORSE, 100, options(**SIMULATED, ratio=1.1), factor) >= least


def test_equal_campaigns_are_no_worse_when_runs_suffice():
    assert share(NO_WORSE, 100, options(**SIMULATED, ratio=1.2), 1.0, runs=10) >= 0.95


def test_the_best_of_several_is_not_the_luckiest():
    """To be compared with the least of six noisy values would call every second campaign slower."""
    assert share(WORSE, 200, options(**SIMULATED, ratio=1.0, reference="best of last 6"), 1.0, before=6) <= 0.1


def test_campaigns_that_are_known_to_differ_are_allowed_to():
    """Runs alone would call most of these slower; eight earlier campaigns tell how far campaigns are apart."""
    chosen = options(**SIMULATED, ratio=1.05)
    assert share(WORSE, 100, chosen, 1.0, before=1, between=0.1, within=0.02) > 0.5
    assert share(WORSE, 100, chosen, 1.0, before=8, between=0.1, within=0.02) <= 0.15


@pytest.mark.parametrize("verdict", [WORSE, NO_WORSE])
def test_what_is_known_of_campaigns_outlasts_a_change_of_level(verdict):
    """One figure that is slower by just what is allowed, two campaigns after one half as slow again."""
    chosen, random, found = options(statistics=["p50"], ratio=1.05), np.random.default_rng(7), []
    how = {"count": 1, "between": 0.05, "within": 0.02}
    for _ in range(400):
        factors = [1.0] * 8 + [1.5] * 2
        earlier = [
            cell for time, factor in zip(TIMES, factors, strict=False) for cell in cells(random, time, factor, **how)
        ]
        found.append(outcome(earlier, cells(random, TIMES[10], 1.5 * 1.05, **how), chosen))
    # Runs alone would come to either verdict in more than a third of cases.
    assert found.count(verdict) / 400 <= 0.08


@pytest.mark.parametrize("reference", ["previous", "best of last 3"])
def test_verdict_and_interval_agree(reference):
    """Worse is what has all of its interval above what is allowed, no worse what has all of it below."""
    random = np.random.default_rng(8)
    chosen, seen = options(**SIMULATED, ratio=1.1, reference=reference), set()
    for factor in np.linspace(0.9, 1.35, 30):
        made = [cell for at in TIMES[:3] for cell in cells(random, at, random.choice([0.95, 1.0]), runs=4)]
        made += cells(random, TIMES[3], factor, runs=4)
        made.sort(key=lambda cell: (cell["rate"], cell["timestamp"]))
        for found in gate.judge_cells(made, [], {("demo", "here", TIMES[3])}, chosen):
            seen.add(found.verdict)
            told = (found.low > found.allowed, found.high < found.allowed)
            assert told == (found.verdict == WORSE, found.verdict == NO_WORSE), found
    assert seen == {WORSE, NO_WORSE, INCONCLUSIVE}


# --- archives --------------------------------------------------------------------------------------------------------


def campaign(project: Project, timestamp: str, factor: float = 1.0, variants=("plain", "istio"), **changes) -> None:
    for variant in variants:
        random = np.random.default_rng([*timestamp.encode(), *variant.encode()])
        slower = factor if variant == "istio" else 1.0
        files = {
            f"{run}.results.json": rawfiles.lines(1e7 * slower * random.lognormal(0, 0.1, 400)) for run in range(1, 5)
        }
        fitting = {"testOptions": {"rate": "100", "duration": "4s"}} | changes
        cell = rawfiles.write_cell(project.archive, files, at=timestamp, variant=variant, **fitting)
        (cell.campaign.path / archive.COMPLETION).touch()


def judged(project: Project, **declared) -> GateOutcome:
    project.make()
    campaigns = list(archive.campaigns(project.archive))
    complete = [each for each in campaigns if each.is_completed]
    return gate.judge(campaigns, complete, project.tables, options(**declared))


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="module")
def slower(tmp_path_factory) -> Project:
    """Three campaigns of which the last has a slower istio."""
    project = Project(tmp_path_factory.mktemp("slower"))
    for timestamp, factor in zip(TIMES[:3], (1.0, 1.0, 1.4), strict=True):
        campaign(project, timestamp, factor)
    return project


def verdicts(found: GateOutcome) -> dict[tuple[str, str], str]:
    return {(each.variant, each.statistic): each.verdict for each in found.findings}


def test_what_got_slower_is_named_with_by_how_much(slower, tmp_path):
    found = judged(slower)
    assert (found.outcome, found.fails) == (WORSE, True)
    assert verdicts(found) == {
        ("istio", "p50"): WORSE,
        ("istio", "p99"): WORSE,
        ("istio", "error_fraction"): NO_WORSE,
        ("plain", "p50"): NO_WORSE,
        ("plain", "p99"): NO_WORSE,
        ("plain", "error_fraction"): NO_WORSE,
    }
    (median,) = (each for each in found.findings if (each.variant, each.statistic) == ("istio", "p50"))
    assert median.low < 1.4 < median.high and median.change == pytest.approx(1.4, rel=0.05)
    assert (median.reference, median.candidate) == (TIMES[1], TIMES[2])
    text = "\n".join(found.lines())
    assert text.startswith("gate: worse. 6 figures against previous: 2 worse, 4 no worse")
    assert f"worse: demo/here: istio at 100 requests/s, p50: 1{median.value / 1e7 * 10 % 10:.3g} ms instead of" in text
    found.write(tmp_path / "site")
    written = json.loads((tmp_path / "site/gate.json").read_text())
    assert (written["outcome"], written["fails"], len(written["figures"])) == ("worse", True, 6)
    assert written["options"]["reference"] == "previous"


def test_other_candidates_and_references(slower):
    assert judged(slower, candidate=TIMES[1]).outcome == NO_WORSE
    assert judged(slower, reference=TIMES[0]).outcome == WORSE
    assert judged(slower, reference="best of last 2").outcome == WORSE
    first = judged(slower, candidate=TIMES[0])
    assert (first.outcome, first.fails) == (INCONCLUSIVE, False)
    assert {each.why for each in first.findings} == {"no earlier campaign measured it in the same way"}
    assert judged(slower, candidate=TIMES[0], cannot_tell="fail").fails
    assert judged(slower, candidate=TIMES[2], reference=TIMES[2]).outcome == INCONCLUSIVE


def test_what_is_allowed_may_differ(slower):
    assert judged(slower, ratio=2).outcome == NO_WORSE
    assert judged(slower, overrides=[{"variant": "istio", "ratio": 2}]).outcome == NO_WORSE
    assert judged(slower, overrides=[{"variant": "plain", "ratio": 2}]).outcome == WORSE
    assert judged(slower, overrides=[{"app": "other", "ratio": 2}]).outcome == WORSE


def test_too_few_runs_are_no_verdict(slower):
    found = judged(slower, runs=5)
    assert found.outcome == INCONCLUSIVE
    assert "has 4 valid runs, 5 are required" in "\n".join(found.lines())


def test_campaigns_that_are_not_there_are_named(slower):
    with pytest.raises(LoadstoneError, match="has no complete campaign 2020-01-01T00:00:00Z"):
        judged(slower, candidate="2020-01-01T00:00:00Z")
    with pytest.raises(LoadstoneError, match="has no campaign 2020-01-01T00:00:00Z"):
        judged(slower, reference="2020-01-01T00:00:00Z")
    with pytest.raises(LoadstoneError, match="no complete campaign, so there is nothing"):
        gate.judge([], [], slower.tables, options())


def test_only_complete_campaigns_and_the_same_way_count(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1], testMode="serial")
    campaign(project, TIMES[2], 3.0)
    Campaign(project.archive, "demo", "here", TIMES[2]).path.joinpath(archive.COMPLETION).unlink()
    found = judged(project)
    assert {each.candidate for each in found.findings} == {TIMES[1]}
    assert found.outcome == INCONCLUSIVE
    campaign(project, TIMES[3])
    found = judged(project, reference=TIMES[0])
    assert found.outcome == NO_WORSE


def test_campaigns_with_reports_alone_are_judged_by_their_means(project):
    for timestamp, factor in zip(TIMES[:2], (1.0, 1.5), strict=True):
        for variant in ("plain", "istio"):
            slower = factor if variant == "istio" else 1.0
            files = {
                f"{run}.summary.json": json.dumps(
                    {"requests": 400, "success": 1, "latencies": {"mean": (1e7 + 1e5 * run) * slower, "50th": 9e6}}
                ).encode()
                for run in range(1, 5)
            }
            fitting = {"testOptions": {"rate": "100", "duration": "4s"}}
            cell = rawfiles.write_cell(project.archive, files, at=timestamp, variant=variant, **fitting)
            (cell.campaign.path / archive.COMPLETION).touch()
    found = judged(project, statistics=["mean", "p50", "error_fraction"])
    assert verdicts(found) == {
        ("istio", "mean"): WORSE,
        ("plain", "mean"): NO_WORSE,
        ("istio", "error_fraction"): NO_WORSE,
        ("plain", "error_fraction"): NO_WORSE,
        ("istio", "p50"): INCONCLUSIVE,
        ("plain", "p50"): INCONCLUSIVE,
    }
    assert "percentiles are never averaged; the mean is available" in "\n".join(found.lines())
    campaign(project, TIMES[2])
    assert {each.why for each in judged(project).findings} == {"no earlier campaign measured it in the same way"}


def test_what_differs_in_the_nearest_earlier_campaigns_is_said(project, tmp_path):
    """Of campaigns that can't be a reference: in the message and in gate.json, from what to what."""
    for timestamp, replicas, changes in zip(TIMES, (1, 2, 1, 4), ({}, {}, {"loadModel": "closed"}, {}), strict=False):
        about = {"variant": "plain", "hostname": "here", "test_replicas": replicas}
        campaign(project, timestamp, variants=("plain",), workloadInfo=about, **changes)
    found = judged(project, statistics=["p50"])
    (finding,) = found.findings
    assert finding.missing == "reference"
    nearest = f"{TIMES[1]} (replicas: 2 before, 4 here) and {TIMES[0]} (replicas: 1 before, 4 here)"
    why = f"no earlier campaign measured it in the same way; nearest: {nearest}"
    assert finding.text() == f"demo/here: plain at 100 requests/s, p50: {why}"
    assert f"  inconclusive: demo/here/{TIMES[3]}, 1 figure: {why}" in list(found.lines())
    found.write(tmp_path)
    (figure,) = json.loads((tmp_path / "gate.json").read_text())["figures"]
    assert figure["nearest"] == [
        {
            "host": "here",
            "timestamp": timestamp,
            "differs": [{"setting": "replicas", "before": before, "here": "4"}],
        }
        for timestamp, before in ((TIMES[1], "2"), (TIMES[0], "1"))
    ]
    named = judged(project, statistics=["p50"], reference=TIMES[2])
    assert "(load model: closed before, open here, replicas: 1 before, 4 here)" in named.findings[0].text()


def sent_by(count: int, connections: int | None = 4, *, processes: int = 1) -> dict:
    """A campaign's settings, and its runs' record, with so many load generators."""
    generator = {"name": "vegeta", "program": "paced", "count": count, "connections": connections}
    senders = [{"generator": each, "process": each % processes, "processor": 1} for each in range(count)]
    return {"generator": {name: value for name, value in generator.items() if value}, "senders": senders}


@pytest.mark.parametrize(
    ("before", "here", "alike"),
    [
        (sent_by(1), sent_by(4), True),
        (sent_by(4), sent_by(2), True),
        (sent_by(1), sent_by(4, processes=2), False),
        (sent_by(1, None), sent_by(4, None), False),
        (sent_by(1), sent_by(4, 8), False),
    ],
)
def test_the_number_of_load_generators_matters_only_where_it_changes_the_latency(project, before, here, alike):
    """docs/load.md has the measurement: equivalent in one process, over as many connections."""
    for timestamp, each in ((TIMES[0], before), (TIMES[1], here)):
        campaign(project, timestamp, variants=("plain",), generator=each["generator"])
        for run in range(1, 5):
            (path,) = project.archive.glob(f"*/*/{timestamp}/*/plain")
            (path / f"{run}.run.json").write_text(json.dumps({"generators": each["senders"]}))
    found = judged(project, statistics=["p50"], ratio=1.2)
    (finding,) = found.findings
    assert (finding.verdict == NO_WORSE) == alike, finding.text()
    if not alike:
        assert "sent by: " in finding.text()
        return
    counts = [each["generator"]["count"] for each in (before, here)]
    (warning,) = found.warnings
    assert warning.startswith(
        f"demo/here: plain at 100 requests/s: sent by {counts[1]} of paced over 4 connections, in the reference by "
        f"{counts[0]} of paced over 4 connections; in one process and over as many connections, four load generators"
    )


def test_a_cell_all_of_whose_runs_are_left_out_is_not_silent(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1])
    project.convert()
    tags = [{"tag": "FAILED", "variant": "istio", "timestamp": TIMES[1]}]
    for each in archive.campaigns(project.archive):
        project_tags = tags if each.timestamp == TIMES[1] else []
        analyse_campaign(each, project.tables, project_tags, ["FAILED"])
    campaigns = list(archive.campaigns(project.archive))
    found = gate.judge(campaigns, campaigns, project.tables, options())
    assert found.outcome == INCONCLUSIVE
    assert {each.why for each in found.findings if each.variant == "istio"} == {"all of its runs are excluded"}


def test_a_variant_that_is_no_longer_measured_is_not_silent(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1])
    campaign(project, TIMES[2], variants=("plain",))
    found = judged(project, cannot_tell="fail")
    assert (found.outcome, found.fails) == (INCONCLUSIVE, True)
    gone = f"not measured, but it was in {TIMES[1]}"
    assert {each.why for each in found.findings if each.variant == "istio"} == {gone}
    assert {each.verdict for each in found.findings if each.variant == "plain"} == {NO_WORSE}
    campaign(project, TIMES[3], variants=("plain",))
    assert judged(project).outcome == NO_WORSE, "the campaign before has not measured it either"
    assert judged(project, reference=TIMES[0]).outcome == INCONCLUSIVE
    rawfiles.write_cell(project.archive, {}, at=TIMES[3], variant="istio", runs=4)
    found = judged(project)
    assert {each.why for each in found.findings if each.variant == "istio"} == {"planned, but not measured"}


def test_which_campaign_is_judged_is_said(project):
    for timestamp in TIMES[:3]:
        campaign(project, timestamp)
    Campaign(project.archive, "demo", "here", TIMES[2]).path.joinpath(archive.COMPLETION).unlink()
    text = "\n".join(judged(project).lines())
    assert f"  judged: demo/here/{TIMES[1]}" in text
    assert f"  newer, but not judged since it is not complete: demo/here/{TIMES[2]}" in text
    assert TIMES[2] not in "\n".join(judged(project, candidate=TIMES[0]).lines())


def test_more_errors_are_worse(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1])
    file = next(project.archive.glob(f"*/*/{TIMES[1]}/*/plain"))
    for each in file.glob("*.results.json"):
        content = each.read_bytes()
        for seq in range(16):
            content = content.replace(b'"seq":%d,"code":200' % seq, b'"seq":%d,"code":503' % seq)
        each.write_bytes(content)
    found = judged(project)
    assert verdicts(found)["plain", "error_fraction"] == WORSE
    text = "\n".join(found.lines())
    assert "4 % instead of 0 %" in text and "4 percentage points more (" in text and "warning" not in text
    assert judged(project, error_fraction="20%").outcome == NO_WORSE


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"reference": "last week"}, "gate.reference"),
        ({"reference": "2026-13-01T00:00:00Z"}, "gate.reference"),
        ({"candidate": "previous"}, "gate.candidate"),
        ({"statistics": ["p75"]}, "gate.statistics"),
        ({"ratio": 0.9}, "gate.ratio"),
        ({"error_fraction": "150%"}, "gate.error_fraction"),
        ({"runs": 1}, "gate.runs"),
        ({"cannot_tell": "perhaps"}, "gate.cannot_tell"),
        ({"overrides": [{"ratio": 2, "error_fraction": 0.1}]}, "gate.overrides.0"),
        ({"overrides": [{"app": "a", "variant": "b"}]}, "gate.overrides.0"),
        ({"margin": 1}, "gate.margin"),
    ],
)
def test_a_wrong_declaration_is_named(declared, said):
    with pytest.raises(LoadstoneError, match=said):
        options(**declared)


def test_nothing_declared_is_the_default():
    found = options()
    assert (found.reference, found.candidate, found.n_references, found.cannot_tell) == (
        "previous",
        "newest",
        1,
        "pass",
    )
    assert history.least_step("p50", found.margin) == pytest.approx(math.log(1.05))
