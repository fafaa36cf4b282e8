"""The gate's outcome in the formats of other tools, read by their own parsers."""

import json
from dataclasses import replace

import pytest
from jsonschema import validate
from junitparser import JUnitXml
from loadstone import config
from loadstone.analysis import gate_reports
from loadstone.analysis.gate_outcome import (
    INCONCLUSIVE,
    MISSING_REFERENCE,
    NO_WORSE,
    WORSE,
    Finding,
    GateOutcome,
    Options,
)
from loadstone.config import GATE_REPORTS
from markdown_it import MarkdownIt
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics.parser import text_string_to_metric_families

HOSTILE = 'istio |"<b>\\ `x`\n::error::@all\x01'
TIME = "2026-03-01T12:00:00+00:00"
# https://bencher.dev/docs/reference/bencher-metric-format/
BENCHER = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
            "additionalProperties": False,
        },
    },
}


def finding(variant: str, verdict: str, statistic: str = "p50", **fields) -> Finding:
    figures = {"reference": "before", "value": 1.4e7, "reference_value": 1e7, "change": 1.4, "allowed": 1.1}
    bounds = {"low": 1.3, "high": 1.5}
    return Finding("demo", "here", TIME, variant, 100.0, statistic, verdict, **figures | bounds | fields)


@pytest.fixture
def outcome() -> GateOutcome:
    shares = {"value": 0.02, "reference_value": 0.0, "change": 0.02, "low": 0.01, "high": None, "allowed": 0.01}
    findings = [
        finding(HOSTILE, WORSE),
        finding("plain", NO_WORSE, change=1.01, low=0.99, high=1.03, value=1.01e7),
        finding("plain", WORSE, "error_fraction", **shares),
        Finding("demo", "here", TIME, "new", 100.0, "p50", INCONCLUSIVE, why="no earlier campaign | measured it"),
    ]
    checked = config.check({"archive": "a", "tables": "t/t", "reports": "r", "gate": {}})
    return GateOutcome(
        findings, Options.from_config(checked["gate"]), [("demo", "here", TIME)], warnings=["2 % <late>"]
    )


def test_all_are_written_beside_the_outcome(outcome, tmp_path):
    gate_reports.write(outcome, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(GATE_REPORTS)


def test_junit(outcome):
    (suite,) = JUnitXml.fromstring(gate_reports.junit(outcome).encode())
    assert (suite.name, suite.tests, suite.failures, suite.skipped, suite.errors) == (f"demo/here/{TIME}", 4, 2, 1, 0)
    worse, no_worse, failed, new = suite
    assert worse.result[0].type == WORSE and "14 ms instead of 10 ms" in worse.result[0].message
    assert (no_worse.is_passed, no_worse.name) == (True, "plain at 100 requests/s, median")
    assert "percentage points more" in failed.result[0].text
    assert new.is_skipped
    strict = replace(outcome, options=replace(outcome.options, cannot_tell="fail"))
    (suite,) = JUnitXml.fromstring(gate_reports.junit(strict).encode())
    assert (suite.failures, suite.skipped) == (3, 0)


def test_openmetrics(outcome):
    families = {each.name: each for each in text_string_to_metric_families(gate_reports.openmetrics(outcome))}
    latency, *_ = families["loadstone_latency_seconds"].samples
    assert (latency.value, latency.labels["statistic"], latency.labels["load"]) == (0.014, "p50", "100")
    assert latency.labels["variant"] == HOSTILE
    assert families["loadstone_latency_seconds"].unit == "seconds"
    assert [each.value for each in families["loadstone_error_ratio"].samples] == [0.02]
    assert [each.value for each in families["loadstone_gate_change_ratio"].samples] == [1.4, 1.01]
    assert [each.value for each in families["loadstone_gate_worse"].samples] == [1, 0, 1]
    # The textfile collector reads the older format, to which the rest are comments.
    older = {each.name: each for each in prometheus.text_string_to_metric_families(gate_reports.openmetrics(outcome))}
    assert {name: each.samples for name, each in older.items()} == {
        name: each.samples for name, each in families.items()
    }


def test_benchmark_actions(outcome, tmp_path):
    gate_reports.write(outcome, tmp_path)
    entries = json.loads((tmp_path / "gate.benchmark.json").read_text())
    assert [(each["unit"], each["value"]) for each in entries] == [("ms", 14), ("ms", 10.1), ("%", 2)]
    assert all(set(each) == {"name", "unit", "value", "extra"} for each in entries)
    assert entries[1]["name"] == "demo/here: plain at 100 requests/s, median"
    metrics = json.loads((tmp_path / "gate.bencher.json").read_text())
    validate(metrics, BENCHER)
    assert metrics["demo/here/plain at 100 requests/s"] == {
        "latency-p50": {"value": 1.01e7},
        "error-fraction": {"value": 0.02},
    }


def test_markdown_shows_hostile_names_as_text(outcome):
    text = gate_reports.markdown(outcome)
    assert text.startswith("## ❌ Load test: worse\n")
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert html.count("<tr>") == 5 and "<b>" not in html and "<late>" not in html and "<code>" not in html
    assert "istio |&quot;&lt;b&gt;\\ `x` ::error::" in html
    assert "14 ms" in html and "1.4×" in html and '<td style="text-align:right">2 pp</td>' in html
    assert "[1.3, 1.5]" in html and "[1, …]" in html
    assert "no earlier campaign | measured it" in html
    assert html.index("worse") < html.index("no earlier") < html.index("no worse</td>")


def test_annotations_of_github_stay_one_line_each(outcome):
    lines = list(gate_reports.annotations(outcome))
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::error", "::warning", "::warning"]
    assert all("\n" not in line for line in lines)
    assert lines[0].startswith('::error title=istio |"<b>\\ `x`%0A%3A%3Aerror%3A%3A@all')
    assert lines[2] == "::warning title=Load test::2 %25 <late>"


def test_figures_that_no_earlier_campaign_has_are_one_line(outcome):
    """As in the first run of a workflow: GitHub shows ten annotations of a kind, and nobody reads a table of dashes."""
    why = "no earlier campaign measured it in the same way"
    new = [
        Finding("demo", "here", TIME, variant, 100.0, name, INCONCLUSIVE, why, MISSING_REFERENCE)
        for variant in ("new", "other")
        for name in ("p50", "p99")
    ]
    both = replace(outcome, findings=[*outcome.findings, *new])
    said = f"demo/here/{TIME}: new at 100 requests/s; other at 100 requests/s: {why}"
    assert list(gate_reports.annotations(both))[3] == f"::warning title=Load test::{said}"
    assert len(list(gate_reports.annotations(both))) == 5
    first = replace(outcome, findings=new, warnings=[])
    (line,) = gate_reports.annotations(first)
    assert line == f"::warning title=Load test::demo/here/{TIME}, 4 figures: {why}"
    one, other = (
        MarkdownIt("gfm-like", {"linkify": False}).render(gate_reports.markdown(each)) for each in (first, both)
    )
    assert "<table>" not in one and f"<li>inconclusive: demo/here/{TIME}, 4 figures: {why}</li>" in one
    assert other.count("<tr>") == 5
