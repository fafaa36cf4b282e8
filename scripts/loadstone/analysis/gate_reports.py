"""The gate's outcome in the formats of other tools, written next to ``gate.json``.

Markdown for a pull request or a job summary, JUnit XML for test reports, JSON for github-action-benchmark and for
Bencher, OpenMetrics text for Prometheus; and annotations of GitHub Actions, as lines for its log.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from loadstone.analysis.gate_outcome import (
    INCONCLUSIVE,
    MISSING_REFERENCE,
    NO_WORSE,
    WORSE,
    Finding,
    GateOutcome,
)
from loadstone.archive.durable import replace
from loadstone.config import GATE_REPORTS
from loadstone.errors import LoadstoneError
from loadstone.percentiles import ERRORS, label
from loadstone.text import counted, percent, rate_text, rounded

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {WORSE: "❌", NO_WORSE: "✅", INCONCLUSIVE: "⚠️"}
_MOST_ROWS = 100  # of the Markdown table


def write(outcome: GateOutcome, reports: Path) -> None:
    """Write all of them to the reports folder. Raises LoadstoneError."""
    contents = (
        markdown(outcome),
        junit(outcome),
        _json(github_action_benchmark(outcome)),
        _json(bencher(outcome)),
        openmetrics(outcome),
    )
    try:
        for name, content in zip(GATE_REPORTS, contents, strict=True):
            replace(reports / name, content.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise LoadstoneError(f"the gate's reports cannot be written: {error.strerror or error}") from None


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, allow_nan=False)


def _figure(found: Finding) -> str:
    return f"{found.variant} at {rate_text(found.rate)} {found.unit}, {label(found.statistic).lower()}"


# --- for people ------------------------------------------------------------------------------------------------------


def markdown(outcome: GateOutcome) -> str:
    """A heading with the outcome, and a table of all figures that have a reference, the worst first."""
    verdicts = [found.verdict for found in outcome.findings]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in (WORSE, INCONCLUSIVE, NO_WORSE))
    against = f"against {outcome.options.reference}"
    lines = [
        f"## {_MARKS[outcome.outcome]} Load test: {outcome.outcome}",
        "",
        f"{counted(len(outcome.findings), 'figure')} {against}: {counts}.",
        "",
        *(f"- {_plain(text)}" for text in outcome.warnings),
        *(f"- {INCONCLUSIVE}: {_plain(text)}" for text in outcome.without_reference()),
        "",
    ]
    order = [WORSE, INCONCLUSIVE, NO_WORSE]
    findings = sorted(_with_reference(outcome), key=lambda each: order.index(each.verdict))
    if not findings:
        return "\n".join(lines)
    lines += [
        "| | Figure | Before | Now | Change | Interval | Allowed |",
        "| --- | --- | --: | --: | --: | --- | --: |",
    ]
    for found in findings[:_MOST_ROWS]:
        cells = [f"{_MARKS[found.verdict]} {found.verdict}", _plain(f"{found.app}/{found.host}: {_figure(found)}")]
        lines.append(f"| {' | '.join([*cells, *_cells(found)])} |")
    if len(findings) > _MOST_ROWS:
        lines += ["", f"… and {len(findings) - _MOST_ROWS:,} more, in `gate.json`."]
    return "\n".join(lines) + "\n"


def _with_reference(outcome: GateOutcome) -> list[Finding]:
    """All but those that are grouped in one line per campaign."""
    return [found for found in outcome.findings if found.missing != MISSING_REFERENCE]


def _cells(found: Finding) -> list[str]:
    """Before, now, change, interval and the allowed change; without figures the reason."""
    if found.value is None or found.reference_value is None or found.change is None or found.allowed is None:
        return ["–", "–", "–", _plain(found.why or "–"), "–"]
    if found.statistic == ERRORS:
        scale, unit = 100, " pp"
        values = [percent(share) for share in (found.reference_value, found.value)]
    else:
        scale, unit = 1, "×"
        values = [f"{rounded(latency_ns / 1e6, 4)} ms" for latency_ns in (found.reference_value, found.value)]
    low, high = ("…" if end is None else rounded(scale * end) for end in (found.low, found.high))
    limits = [rounded(scale * each) + unit for each in (found.change, found.allowed)]
    return [*values, limits[0], f"[{low}, {high}]", limits[1]]


def _plain(text: str) -> str:
    """Text that is neither markup nor HTML in Markdown."""
    escaped = re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def annotations(outcome: GateOutcome) -> Iterator[str]:
    """Workflow commands of GitHub Actions: an error per worse figure, a warning per inconclusive one.

    GitHub shows the first ten errors and the first ten warnings of a step: the most important ones come first.
    """
    kind = "error" if outcome.options.cannot_tell == "fail" else "warning"
    findings = _with_reference(outcome)
    yield from (_annotation("error", found) for found in findings if found.verdict == WORSE)
    yield from (f"::warning title=Load test::{_message(text)}" for text in outcome.warnings)
    yield from (f"::{kind} title=Load test::{_message(text)}" for text in outcome.without_reference())
    yield from (_annotation(kind, found) for found in findings if found.verdict == INCONCLUSIVE)


def _annotation(kind: str, found: Finding) -> str:
    return f"::{kind} title={_property(_figure(found))}::{_message(found.text())}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


# --- for programs ----------------------------------------------------------------------------------------------------


def junit(outcome: GateOutcome) -> str:
    """A test suite per campaign, a test case per figure. Inconclusive ones are skipped, or fail if the gate says so."""
    root = ET.Element("testsuites", name="loadstone gate")
    for campaign in dict.fromkeys(found.campaign for found in outcome.findings):
        own = [found for found in outcome.findings if found.campaign == campaign]
        suite = ET.SubElement(root, "testsuite", name=_xml("/".join(campaign)))
        counts = {"tests": len(own), "failures": 0, "errors": 0, "skipped": 0}
        for found in own:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=_xml(f"{found.app}.{found.host}.{found.variant}"),
                name=_xml(_figure(found)),
            )
            if found.verdict == NO_WORSE:
                continue
            fails = found.verdict == WORSE or outcome.options.cannot_tell == "fail"
            counts["failures" if fails else "skipped"] += 1
            child = ET.SubElement(case, "failure" if fails else "skipped", message=_xml(found.text()))
            if fails:
                child.set("type", found.verdict)
                child.text = _xml(found.text())
        for name, count in counts.items():
            suite.set(name, str(count))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _measured(outcome: GateOutcome) -> Iterator[tuple[Finding, float]]:
    """Figures with a value: latencies in ms, shares in percent."""
    for found in outcome.findings:
        if found.value is not None:
            yield found, 100 * found.value if found.statistic == ERRORS else found.value / 1e6


def github_action_benchmark(outcome: GateOutcome) -> list[dict[str, Any]]:
    """For its tool ``customSmallerIsBetter``."""
    return [
        {
            "name": f"{found.app}/{found.host}: {_figure(found)}",
            "unit": "%" if found.statistic == ERRORS else "ms",
            "value": value,
            "extra": f"{found.verdict}: {found.text()}",
        }
        for found, value in _measured(outcome)
    ]


def bencher(outcome: GateOutcome) -> dict[str, Any]:
    """Bencher Metric Format: latencies in ns, shares as they are."""
    found: dict[str, Any] = {}
    for each, _ in _measured(outcome):
        name = f"{each.app}/{each.host}/{each.variant} at {rate_text(each.rate)} {each.unit}"
        measure = "error-fraction" if each.statistic == ERRORS else f"latency-{each.statistic}"
        found.setdefault(name, {})[measure] = {"value": each.value}
    return found


def openmetrics(outcome: GateOutcome) -> str:
    """Gauges: latency, error fraction, change relative to the reference, and whether a figure is worse."""
    metrics: dict[str, list[tuple[Finding, float]]] = {
        "loadstone_latency_seconds": [],
        "loadstone_error_ratio": [],
        "loadstone_gate_change_ratio": [],
        "loadstone_gate_worse": [],
    }
    for found in outcome.findings:
        is_of_errors = found.statistic == ERRORS
        if found.value is not None:
            name = "loadstone_error_ratio" if is_of_errors else "loadstone_latency_seconds"
            metrics[name].append((found, found.value if is_of_errors else found.value / 1e9))
        if found.change is not None and not is_of_errors:
            metrics["loadstone_gate_change_ratio"].append((found, found.change))
        if found.verdict != INCONCLUSIVE:
            metrics["loadstone_gate_worse"].append((found, float(found.verdict == WORSE)))
    lines = []
    for name, samples in metrics.items():
        lines.append(f"# TYPE {name} gauge")
        if unit := next((unit for unit in ("seconds", "ratio") if name.endswith(f"_{unit}")), None):
            lines.append(f"# UNIT {name} {unit}")
        lines.append(f"# HELP {name} {_HELP[name]}")
        lines += [f"{name}{{{_labels(found)}}} {value!r}" for found, value in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


_HELP = {
    "loadstone_latency_seconds": "Latency of the newest complete campaign.",
    "loadstone_error_ratio": "Share of failed requests of the newest complete campaign.",
    "loadstone_gate_change_ratio": "Latency relative to the reference.",
    "loadstone_gate_worse": "1 where a figure is worse by more than is allowed, 0 where it is no worse.",
}


def _labels(found: Finding) -> str:
    labels = {
        "app": found.app,
        "host": found.host,
        "campaign": found.candidate,
        "variant": found.variant,
        "load": rate_text(found.rate).replace(",", ""),
        "unit": found.unit,
        "statistic": found.statistic,
    }
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
