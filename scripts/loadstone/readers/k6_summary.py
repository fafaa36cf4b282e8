"""k6's end-of-test figures as JSON, in each of the three forms in which k6 gives them.

- ``--summary-export``: values right below each metric, groups and checks by name; neither types nor units.
- what a script's ``handleSummary(data)`` is given, written down: values below ``values``, with type and what they
  contain, groups and checks as lists.
- ``--summary-export`` with ``--new-machine-readable-summary``: ``results`` of lists, and the duration.

Trends are in milliseconds where they are times, counters of data in bytes. The script that the last form
repeats is never read: it may contain secrets.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loadstone.readers.base import (
    Figure,
    Format,
    Problems,
    Report,
    bounded,
    json_number,
    json_object,
    json_text,
    latency_column,
    ms_to_ns,
)
from loadstone.readers.k6_raw import DURATION, DURATIONS, REQUESTS, WEBSOCKET
from loadstone.readers.stream import read_object

_MOST_FIGURES = 100_000
_DEEPEST = 100  # of groups in groups

# What k6 itself measures; the first form says of no metric what it contains.
_TIMES = (
    "http_req_",
    "iteration_duration",
    "group_duration",
    "grpc_req_duration",
    "ws_connecting",
    "ws_session_duration",
)
_NO_TIMES = ("http_req_failed",)
_DATA = ("data_sent", "data_received")

_COUNTS = ("count", "passes", "fails", "matches", "total")


def report(path: Path, problems: Problems) -> Report | None:
    """Every figure of the file; ``facts`` may hold ``duration_s``. None when it is not a k6 summary."""
    content = read_object(path, problems, "k6 summary")
    if content is None:
        return None
    figures = bounded(list(_figures(content)), _MOST_FIGURES, problems)
    if not figures:
        problems.damaged = "it is not a valid k6 summary"
        return None
    duration_s = _number(json_object(content.get("config")).get("duration"))
    duration_ms = _number(json_object(content.get("state")).get("testRunDurationMs"))
    if duration_s is None and duration_ms is not None:
        duration_s = duration_ms / 1000
    facts = {} if duration_s is None else {"duration_s": f"{duration_s:.9g}"}
    return Report(summary=summary(figures), figures=figures, facts=facts)


def _figures(content: dict[str, Any]) -> Iterator[Figure]:
    results = json_object(content.get("results"))  # of the third form
    checks = json_object(results.get("checks"))
    for metric in [*_list(content.get("metrics")), *_list(results.get("metrics")), *_list(checks.get("metrics"))]:
        name = _name(metric)
        yield from _metric(name, json_object(metric.get("values")) or metric, metric.get("contains"))
        yield from _thresholds(name, json_object(metric.get("thresholds")))
    yield from _group_checks("", json_object(content.get("root_group")))
    for check in _list(checks.get("results")):
        yield from _check("", check)


def _name(part: dict[str, Any]) -> str:
    return json_text(part["name"]) if isinstance(part.get("name"), str) else ""


def _list(value: object) -> list[dict[str, Any]]:
    """The objects of a list, or of an object by name; both occur."""
    if isinstance(value, dict):
        return [{"name": name} | inner for name, inner in value.items() if isinstance(inner, dict)]
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _metric(name: str, values: dict[str, Any], contains: object) -> Iterator[Figure]:
    unit = _unit(name, contains)
    is_rate = "passes" in values or "matches" in values
    for statistic, value in values.items():
        number = _number(value)
        if number is None:
            continue
        # The first form calls a rate's share its value.
        called = "rate" if is_rate and statistic == "value" else statistic
        of = _unit_of(called, unit, is_rate=is_rate, name=name)
        text = json.dumps(value)
        if of == "ns":
            number = ms_to_ns(text)
        yield Figure("", name, json_text(called), number, of, text)


def _unit_of(statistic: str, unit: str, *, is_rate: bool, name: str) -> str:
    if statistic in _COUNTS:
        return unit if statistic == "count" and unit == "bytes" else ""
    if is_rate:
        return "share"
    if statistic == "rate":
        return "bytes/s" if unit == "bytes" else "requests/s" if name.partition("{")[0] == "http_reqs" else "1/s"
    return unit


def _unit(name: str, contains: object) -> str:
    if contains == "time" or (contains is None and name.startswith(_TIMES) and not name.startswith(_NO_TIMES)):
        return "ns"
    return "bytes" if contains == "data" or (contains is None and name.startswith(_DATA)) else ""


def _thresholds(name: str, thresholds: dict[str, Any]) -> Iterator[Figure]:
    """In the first form a threshold is true when it was crossed, in the second it says whether it is ok."""
    for source, crossed in thresholds.items():
        kept = crossed.get("ok") if isinstance(crossed, dict) else not crossed if isinstance(crossed, bool) else None
        if isinstance(kept, bool):
            yield outcome(THRESHOLDS, name, json_text(source), "✓" if kept else "✗")


def _group_checks(section: str, group: dict[str, Any], depth: int = 0) -> Iterator[Figure]:
    """The checks of a group and of those in it; `section` is its path, as k6 writes it (``::outer::inner``)."""
    for check in _list(group.get("checks")):
        yield from _check(section, check)
    for inner in _list(group.get("groups")) if depth < _DEEPEST else ():
        yield from _group_checks(f"{section}::{_name(inner)}", inner, depth + 1)


def _check(section: str, check: dict[str, Any]) -> Iterator[Figure]:
    passes, fails = _number(check.get("passes")), _number(check.get("fails"))
    if passes is None or fails is None:
        return
    metric = check_metric(_name(check))
    yield outcome(section, metric, "passed", "✓" if fails == 0 else "✗")
    yield Figure(section, metric, "passes", passes, "", json.dumps(check["passes"]))
    yield Figure(section, metric, "fails", fails, "", json.dumps(check["fails"]))


def _number(value: object) -> float | None:
    known = json_number(value)
    return None if known is None else float(known)


# --- what k6's figures mean, printed or in JSON -----------------------------------------------------------------------

_FAILED = "http_req_failed"
_COUNTED_BY = {DURATION: REQUESTS, WEBSOCKET: "ws_sessions"}
THRESHOLDS = "THRESHOLDS"  # the section of thresholds: statistic is the expression, value 1 means that it was kept
CHECK = "checks{check:"


def summary(figures: Sequence[Figure]) -> dict[str, Any]:
    """The columns of ``summaries`` that k6 knows of all requests of a run, those of setup and teardown among them.

    HTTP requests, gRPC calls and WebSocket sessions are requests; k6 has no latency of several kinds together.

    `success` is the share of responses that the script expected (codes 200 to 399 unless it says otherwise). k6 counts
    neither codes nor successes per second.
    """
    overall = {(figure.metric, figure.statistic): figure.value for figure in figures if not figure.section}
    kinds = [name for name in DURATIONS if any(metric == name for metric, _ in overall)]
    found: dict[str, Any] = {
        column: value
        for (metric, statistic), value in overall.items()
        if kinds == [metric] and (column := latency_column(statistic))
    }
    counted = [overall.get((_COUNTED_BY.get(kind, kind), "count")) for kind in kinds or DURATIONS[:1]]
    if None not in counted:
        found["requests"] = int(sum(filter(None, counted)))
    # From counts, which are more exact than a rounded share. k6 calls a rate's ones passes, or matches.
    counts = {statistic: value for (metric, statistic), value in overall.items() if metric == _FAILED}
    failed = counts.get("passes", counts.get("matches"))
    if failed is not None and "fails" in counts:
        counts.setdefault("total", failed + counts["fails"])
    if failed is not None and counts.get("total"):
        found["success"] = min(1.0, max(0.0, 1 - failed / counts["total"]))
    return found


def outcome(section: str, metric: str, statistic: str, mark: str) -> Figure:
    """Whether a check passed or a threshold was kept, by k6's mark: ``✓`` or ``✗``."""
    return Figure(section, metric, statistic, float(mark == "✓"), "", mark)


def check_metric(name: str) -> str:
    """A check's name among the metrics, as k6 calls the submetric of one check."""
    return f"{CHECK}{name}}}"


FORMATS = {
    "k6.summary.json": Format("k6", report=report, resolution_ns=1, begins=rb'(?s)\s*\{.*"metrics"\s*:', phases=True),
}
