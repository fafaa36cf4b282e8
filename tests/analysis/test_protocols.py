"""Runs of different protocols: never pooled, never compared unless a comparison allows it, and TLS that changes."""

import json
from typing import Any

import pytest
from analysis.test_caveats import settled
from loadstone import archive
from loadstone.analysis import history
from loadstone.analysis.comparison import compare
from loadstone.config.comparisons import Comparison
from support import rawfiles
from support.rawfiles import lines, write_cell

ORDER = {"kind": "blocks", "positions": [1, 2, 3, 4, 5]}
TLS = {"tls": "TLS 1.3", "cipher": "TLS_AES_128_GCM_SHA256", "certificate": "ab" * 32}


def write(
    project: Any,
    variant: str,
    protocols: list[dict[str, str] | None],
    *,
    at: str = rawfiles.TIMESTAMP,
    level: float = 2e6,
) -> None:
    """A run for each of `protocols`, the entry of its record; None: it has no record."""
    files = {}
    for number, entry in enumerate(protocols, start=1):
        requests = lines(settled(level, number), 200.0)
        files[f"{number}.results.json.zst"] = rawfiles.compress(requests)
        if entry:
            record = {"run": number, "identity": {"negotiated": entry}, "negotiated": [entry | {"handshakes": 1}]}
            files[f"{number}.run.json"] = json.dumps(record).encode()
    options = {"rate": "200", "duration": "5s", "timeout": "2s"}
    write_cell(
        project.archive,
        files,
        rate="200",
        variant=variant,
        at=at,
        order=ORDER,
        runs=len(protocols),
        testOptions=options,
    )


def analysed(project: Any) -> None:
    project.convert()
    project.analyse()


def test_variants_of_different_protocols_have_no_verdict_unless_it_is_allowed(project: Any) -> None:
    write(project, "a", [{"protocol": "http1"}] * 5)
    write(project, "b", [{"protocol": "http2"} | TLS] * 5, level=3e6)
    analysed(project)
    found = project.rows("SELECT verdict, reasons[1].code AS code, ratio_low FROM effects WHERE statistic = 'p50'")
    assert found == [{"verdict": "inconclusive", "code": "protocols_differ", "ratio_low": None}]
    assert project.rows("SELECT DISTINCT protocol, tls FROM runs ORDER BY 1") == [
        {"protocol": "http1", "tls": None},
        {"protocol": "http2", "tls": f"TLS 1.3, TLS_AES_128_GCM_SHA256, certificate {'ab' * 32}"},
    ]
    campaigns = list(archive.campaigns(project.archive))
    for allow, refused in ((frozenset[str](), True), (frozenset({"protocols"}), False)):
        declared = Comparison(
            "both", "Both", campaigns[0].app, (campaigns[0].host,), (campaigns[0].timestamp,), allow=allow
        )
        selection = compare(declared, campaigns, project.tables)
        assert bool(selection.refusals) == refused
        verdicts = project.rows("SELECT verdict FROM effects WHERE comparison = 'both' AND statistic = 'p50'")
        assert verdicts == ([] if refused else [{"verdict": "slower"}])


def test_runs_of_several_protocols_in_one_cell_are_excluded(project: Any) -> None:
    write(project, "a", [{"protocol": "http1"}, {"protocol": "http2"} | TLS, None])
    analysed(project)
    runs = project.rows("SELECT excluded, exclusion_reason FROM runs")
    reason = "runs of this rate and variant were sent over http1 and http2, which are never pooled"
    assert runs == [{"excluded": True, "exclusion_reason": reason}] * 3


def test_an_unknown_protocol_is_no_other_one(project: Any) -> None:
    write(project, "a", [None, None, None])
    write(project, "b", [{"protocol": "http1"}] * 3)
    analysed(project)
    assert project.rows("SELECT DISTINCT reasons[1].code AS code FROM effects WHERE statistic = 'p50'") == [
        {"code": None}
    ]


def test_tls_that_changes_within_a_campaign_is_a_problem_of_the_run(project: Any) -> None:
    renewed = TLS | {"certificate": "cd" * 32}
    write(project, "a", [{"protocol": "http1"} | TLS] * 2 + [{"protocol": "http1"} | renewed])
    analysed(project)
    (problem,) = project.rows("SELECT run, problem FROM problems")
    assert problem["run"] == 3
    assert problem["problem"].startswith(
        "TLS has changed within the campaign: TLS 1.3, TLS_AES_128_GCM_SHA256, certificate cd"
    )
    assert project.rows("SELECT DISTINCT excluded FROM runs") == [{"excluded": False}]


@pytest.mark.parametrize(("later", "ways"), [("http1", 1), ("http2", 2)])
def test_a_history_goes_on_unless_the_protocol_is_known_to_have_changed(project: Any, later: str, ways: int) -> None:
    times = ("2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00+00:00")
    for at, protocol in zip(times, (None, "http1", later), strict=True):
        write(project, "a", [{"protocol": protocol} if protocol else None] * 3, at=at)
    analysed(project)
    history.write(list(archive.campaigns(project.archive)), project.tables, {})
    found = project.rows("SELECT DISTINCT way FROM history")
    # Of three, the unknown one is of its own where the others differ.
    assert len(found) == (1 if ways == 1 else 3)
