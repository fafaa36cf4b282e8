"""What the gate says: of services that fail, in which order, in which words, with which numbers."""

import json

import numpy as np
import pytest
from analysis.test_gate import TIMES, campaign, judged, verdicts
from loadstone import archive
from loadstone.analysis import history
from loadstone.analysis.gate_outcome import INCONCLUSIVE, NO_WORSE, WORSE, Finding
from support import foreign, rawfiles
from tables.tabling import Project

DAYS = "note: 1 figure with too few earlier campaigns to estimate how much campaigns vary; see methods.html"


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


def add(project: Project, timestamp: str, runs: list[bytes], **how) -> None:
    """A complete campaign of these runs of one variant at one rate."""
    files = {f"{run}.results.json": content for run, content in enumerate(runs, 1)}
    made = rawfiles.write_cell(project.archive, files, at=timestamp, **how)
    (made.campaign.path / archive.COMPLETION).touch()


def failing(project: Project, timestamp: str, share: float, timed_out: bool = False, variant: str = "plain") -> None:
    """A campaign of which such a share of requests fails at once, or times out after two seconds."""
    random = np.random.default_rng([*timestamp.encode()])
    how = {"code": 0, "error": "request timeout"} if timed_out else {"code": 503, "error": "unavailable"}
    runs = []
    for _ in range(4):
        content = b""
        for seq, latency_ns in enumerate(1e7 * random.lognormal(0, 0.1, 400)):
            gone = seq % 100 < 100 * share
            took_ns = (2e9 if timed_out else 1e5) if gone else latency_ns
            sent_ns = rawfiles.START_NS + seq * 10**7
            content += rawfiles.line(seq, int(took_ns), sent_ns=sent_ns, **(how if gone else {}))
        runs.append(content)
    load = {"testOptions": {"rate": "100", "duration": "4s", "timeout": "2s"}}
    add(project, timestamp, runs, variant=variant, **load)


def test_a_service_that_fails_wholly_does_not_pass_for_a_fast_one(project):
    for timestamp, share in zip(TIMES, (0.0, 1.0, 1.0, 0.0), strict=False):
        failing(project, timestamp, share)
    latencies = {"statistics": ["p50", "p99"]}
    found = judged(project, candidate=TIMES[1], **latencies)
    assert found.outcome == INCONCLUSIVE and judged(project, candidate=TIMES[1], **latencies, cannot_tell="fail").fails
    text = "\n".join(found.lines())
    assert "plain at 100 requests/s: 100 % of its requests failed, so latencies are those of failures" in text
    warning = (
        "warning: demo/here: plain at 100 requests/s: 100 % of requests failed, so latencies are those of failures"
    )
    assert warning in text
    # Failures that rose are what is worse.
    found = judged(project, candidate=TIMES[1])
    assert found.fails and [each.statistic for each in found.findings if each.verdict == WORSE] == ["error_fraction"]
    # All of it failed before as well: nothing rose, and nothing is known of latencies.
    found = judged(project, candidate=TIMES[2])
    assert found.outcome == INCONCLUSIVE and verdicts(found)["plain", "error_fraction"] == NO_WORSE
    assert warning in "\n".join(found.lines())
    # Answers are slower than failures were.
    found = judged(project, candidate=TIMES[3])
    assert verdicts(found) == {
        ("plain", "p50"): INCONCLUSIVE,
        ("plain", "p99"): INCONCLUSIVE,
        ("plain", "error_fraction"): NO_WORSE,
    }
    text = "\n".join(found.lines())
    assert f"in the reference, {TIMES[2]}, 100 % of its requests failed" in text and "warning" not in text


def test_latencies_of_few_failures_and_of_timeouts_are_compared(project):
    for timestamp in TIMES[:2]:
        failing(project, timestamp, 0.05)
        failing(project, timestamp, 0.1, timed_out=True, variant="direct")
    found = judged(project, ratio=1.5, statistics=["p50"])
    assert (found.outcome, len(found.findings)) == (NO_WORSE, 2)
    # That one request in ten timed out is said all the same.
    assert "  warning: demo/here: direct at 100 requests/s: 10 % of requests failed" in list(found.lines())


def told(**changes) -> str:
    known = {"statistic": "p99", "verdict": WORSE, "reference": TIMES[0], "allowed": 1.1}
    return Finding("demo", "here", TIMES[1], "plain", 1000.0, **known | changes).text()


def test_numbers_are_for_people():
    latency = {"value": 3e10, "reference_value": 2.002e6, "change": 15000.0, "low": 14000.0, "at_least": True}
    assert told(**latency, why="it falls among requests that timed out") == (
        f"demo/here: plain at 1,000 requests/s, p99: at least 30,000 ms instead of 2.002 ms in {TIMES[0]}, "
        "at least 15,000 times (at least 14,000; allowed 1.1): it falls among requests that timed out"
    )
    share = {"statistic": "error_fraction", "value": 0.0017, "reference_value": 0.05, "allowed": 0.01}
    assert told(**share, change=-0.0483, low=-0.07, high=-0.0312) == (
        f"demo/here: plain at 1,000 requests/s, error_fraction: 0.17 % instead of 5 % in {TIMES[0]}, "
        "4.83 percentage points less ([-7, -3.12]; allowed 1)"
    )
    close = {"value": 2e6, "reference_value": 1e6, "change": 2.0, "low": 1.10004, "high": 1e5}
    assert "2 ms instead of 1 ms" in told(**close) and "2 times ([1.10004, 100,000]; allowed 1.1)" in told(**close)
    assert "0 percentage points ([0, 2]; allowed 1)" in told(**share, change=0.0, low=-4e-14, high=0.02)


def test_a_campaign_without_a_predecessor_is_one_line_and_hides_nothing(project):
    random = np.random.default_rng(1)
    for rate in range(1, 26):
        runs = [rawfiles.lines(1e7 * random.lognormal(0, 0.1, 40)) for _ in range(3)]
        load = {"testOptions": {"rate": str(rate), "duration": f"{40 / rate:g}s"}}
        add(project, TIMES[5], runs, app="alone", rate=str(rate), **load)
    campaign(project, TIMES[0])
    campaign(project, TIMES[1], 1.4, variants=("istio", "direct"))
    lines = [line for line in judged(project).lines() if not line.startswith(("  judged", "  note"))]
    unmatched = "no earlier campaign measured it in the same way"
    nearest = f"nearest: {TIMES[0]} (variant: istio before, direct here)"
    assert lines[1:3] == [
        f"  inconclusive: alone/here/{TIMES[5]}, 75 figures: {unmatched}",
        f"  inconclusive: demo/here/{TIMES[1]}: direct at 100 requests/s: {unmatched}; {nearest}",
    ]
    assert [line[:44] for line in lines[3:5]] == ["  worse: demo/here: istio at 100 requests/s,"] * 2
    assert lines[5:] == [
        f"  inconclusive: demo/here: plain at 100 requests/s: not measured, but it was in {TIMES[0]}",
        "  no worse: 1 figure, see gate.json",
    ]


def test_more_runs_are_advised_where_they_help(project):
    campaign(project, TIMES[0])
    campaign(project, TIMES[1], 1.1)
    advice = "More runs per campaign would give narrower intervals."
    assert advice in "\n".join(judged(project, ratio=1.1).lines())
    assert advice not in "\n".join(judged(project, candidate=TIMES[0]).lines())


def test_what_lacks_has_a_subject(project):
    random = np.random.default_rng(2)
    for timestamp, number in zip(TIMES, (40, 400, 40), strict=False):
        runs = [rawfiles.lines(1e7 * random.lognormal(0, 0.1, number)) for _ in range(3)]
        add(project, timestamp, runs, rate="100", testOptions={"rate": "100", "duration": f"{number / 100:g}s"})
    lines = [list(judged(project, statistics=["p99"], candidate=at).lines())[2] for at in TIMES[:3]]
    assert lines[0].endswith(f"{TIMES[0]}, 1 figure: no earlier campaign measured it in the same way")
    assert lines[1].endswith(f" at 100 requests/s: in the reference, {TIMES[0]}, it has too few requests")
    assert lines[2].endswith(" at 100 requests/s: it has too few requests")


def test_what_is_known_by_reports_alone_may_be_of_failures_too(project):
    for timestamp, success in zip(TIMES, (1, 0.5), strict=False):
        reported = {"requests": 400, "success": success, "latencies": {"mean": 1e7}}
        files = {f"{run}.summary.json": json.dumps(reported).encode() for run in range(1, 4)}
        made = rawfiles.write_cell(project.archive, files, at=timestamp, testOptions={"rate": "100", "duration": "4s"})
        (made.campaign.path / archive.COMPLETION).touch()
    (finding,) = judged(project, statistics=["mean"]).findings
    assert finding.why == "50 % of its requests failed, so latencies include failures"


def test_loads_of_users_are_told_as_such(project):
    hey = {"testMode": "hey", "generator": {"name": "hey"}, "loadModel": "closed", "users": 3}
    for timestamp, variants in zip(TIMES, (("plain", "istio"), ("plain",)), strict=False):
        for variant in variants:
            files = {f"{run}.hey.csv": foreign.HEY.encode() for run in range(1, 4)}
            made = rawfiles.write_cell(project.archive, files, at=timestamp, rate="3", variant=variant, **hey)
        (made.campaign.path / archive.COMPLETION).touch()
    found = judged(project)
    assert {each.unit for each in found.findings} == {"users"}
    text = "\n".join([*found.lines(), *(each.text() for each in found.findings)])
    assert "plain at 3 users, error_fraction: " in text and "istio at 3 users: not measured, but it was in" in text
    assert "requests/s" not in text


def test_the_unit_of_a_rate_that_is_missing_is_that_of_the_reference(project):
    campaign(project, TIMES[0], variants=("plain",))
    hey = {"testMode": "hey", "generator": {"name": "hey"}, "loadModel": "closed", "users": 3}
    files = {f"{run}.hey.csv": foreign.HEY.encode() for run in range(1, 4)}
    made = rawfiles.write_cell(project.archive, files, at=TIMES[1], rate="3", variant="plain", **hey)
    (made.campaign.path / archive.COMPLETION).touch()
    assert {each.unit for each in judged(project).findings if each.rate != 3} == {"requests/s"}


def test_that_nobody_knows_how_much_days_differ_is_said(project):
    for timestamp in TIMES[:5]:
        campaign(project, timestamp, variants=("plain",))
    one = {"statistics": ["p50"]}
    for candidate, known in ((TIMES[1], False), (TIMES[3], False), (TIMES[4], True)):
        found = judged(project, candidate=candidate, **one)
        assert [each.days_unknown for each in found.findings] == [not known]
        assert (DAYS in "\n".join(found.lines())) is not known
    assert DAYS not in "\n".join(judged(project, candidate=TIMES[0], **one).lines()), "nothing is told at all"


def test_what_was_sent_late_is_said_of_both_sides_and_in_the_history(project):
    random = np.random.default_rng(3)

    def sent(late: bool) -> bytes:
        due = np.arange(400) * 10**7
        at = np.where(late & (due >= 10**9) & (due < 2 * 10**9), 2 * 10**9, due) + rawfiles.START_NS
        taken = (1e7 * random.lognormal(0, 0.1, 400)).astype(int)
        return b"".join(rawfiles.line(seq, int(taken[seq]), sent_ns=int(at[seq])) for seq in range(400))

    for timestamp, late in zip(TIMES, ([], [1], [2, 3]), strict=False):
        add(
            project,
            timestamp,
            [sent(run in late) for run in range(1, 4)],
            testOptions={"rate": "100", "duration": "4s"},
        )
    text = "\n".join(judged(project).lines())
    for timestamp, number in ((TIMES[1], 1), (TIMES[2], 2)):
        which = f"demo/here/{timestamp}: plain at 100 requests/s"
        assert f"  warning: {which}: {number} of 3 runs were sent late by the load generator" in text
    assert TIMES[0] not in text
    history.write(list(archive.campaigns(project.archive)), project.tables, {})
    rows = project.rows("SELECT differs FROM history WHERE statistic = 'p50' ORDER BY started_at")
    late = [[], ["1 of 3 runs were sent late"], ["2 of 3 runs were sent late"]]
    assert [row["differs"] for row in rows] == late
