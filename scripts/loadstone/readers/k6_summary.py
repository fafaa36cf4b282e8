"""k6's end-of-test figures as JSON, in each of the three forms in which k6 gives them.

- ``--summary-export``: values right below each metric, groups and checks by name; neither types nor units.
- what a script's ``handleSummary(data)`` is given, written down: values below ``values``, with type and what they
  contain, groups and checks as lists.
- ``--summary-export`` with ``--new-machine-readable-summary``: ``results`` of lists, and the duration.

Trends are in milliseconds where they are times, counters of data in bytes. The script that the last form repeats is
never looked at: it may hold what nobody else should see.
"""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from loadstone.readers.base import (
    NS_PER_MS,
    Figure,
    Format,
    Problems,
    Report,
    bounded,
    json_number,
    json_text,
    latency_column,
)
from loadstone.readers.k6_raw import DURATION, REQUESTS
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
    """Every figure of the file; ``facts`` may hold ``duration_s``. None when it is none of k6's."""
    content = read_object(path, problems, "summary of k6")
    if content is None:
        return None
    found = Report()
    if isinstance(content.get("results"), dict):
        _read_results(content, found)
    elif isinstance(content.get("metrics"), dict):
        _read_metrics(content, found)
    if not found.figures:
        problems.damaged = "it is no summary of k6"
        return None
    found.figures = bounded(found.figures, _MOST_FIGURES, problems)
    found.summary = summary(found.figures)
    return found


def _read_metrics(content: dict[str, Any], found: Report) -> None:
    """The first two forms."""
    for name, metric in content["metrics"].items():
        if not isinstance(metric, dict):
            continue
        values = metric["values"] if isinstance(metric.get("values"), dict) else metric
        found.figures += _metric(name, values, metric.get("contains"))
        if isinstance(metric.get("thresholds"), dict):
            found.figures += _thresholds(name, metric["thresholds"])
    found.figures += _checks(content.get("root_group"))
    state = content.get("state")
    duration_ms = _number(state.get("testRunDurationMs")) if isinstance(state, dict) else None
    if duration_ms is not None:
        found.facts["duration_s"] = f"{duration_ms / 1000:.9g}"


def _read_results(content: dict[str, Any], found: Report) -> None:
    """The third form."""
    config = content.get("config")
    duration_s = _number(config.get("duration")) if isinstance(config, dict) else None
    if duration_s is not None:
        found.facts["duration_s"] = f"{duration_s:.9g}"
    results = content["results"]
    checks = results["checks"] if isinstance(results.get("checks"), dict) else {}
    for metric in [*_list(results.get("metrics")), *_list(checks.get("metrics"))]:
        if isinstance(metric.get("name"), str) and isinstance(metric.get("values"), dict):
            found.figures += _metric(metric["name"], metric["values"], metric.get("contains"))
    for check in _list(checks.get("results")):
        found.figures += _check("", check)


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
            number = float(Decimal(text) * NS_PER_MS)  # in decimals: 64.96357 ms are 64963570 ns
        yield Figure("", json_text(name), json_text(called), number, of, text)


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
    for source, outcome in thresholds.items():
        kept = outcome.get("ok") if isinstance(outcome, dict) else not outcome if isinstance(outcome, bool) else None
        if isinstance(kept, bool):
            yield _truth(THRESHOLDS, name, source, kept)


def _checks(root: object) -> Iterator[Figure]:
    """The checks of all groups; a group's section is its path, as k6 writes it (``::outer::inner``)."""
    waiting = [("", root, 0)]
    while waiting:
        section, group, depth = waiting.pop()
        if not isinstance(group, dict) or depth > _DEEPEST:
            continue
        for check in _list(group.get("checks")):
            yield from _check(section, check)
        waiting += [(f"{section}::{_name(inner)}", inner, depth + 1) for inner in reversed(_list(group.get("groups")))]


def _check(section: str, check: dict[str, Any]) -> Iterator[Figure]:
    passes, fails = _number(check.get("passes")), _number(check.get("fails"))
    if passes is None or fails is None:
        return
    metric = check_metric(_name(check))
    yield _truth(section, metric, "passed", fails == 0)
    yield Figure(section, metric, "passes", passes, "", json.dumps(check["passes"]))
    yield Figure(section, metric, "fails", fails, "", json.dumps(check["fails"]))


def _truth(section: str, metric: str, statistic: str, truth: object) -> Figure:
    return Figure(section, json_text(metric), json_text(statistic), float(bool(truth)), "", "✓" if truth else "✗")


def _number(value: object) -> float | None:
    known = json_number(value)
    return None if known is None else float(known)


# --- what k6's figures mean, printed or in JSON -----------------------------------------------------------------------

_FAILED = "http_req_failed"
THRESHOLDS = "THRESHOLDS"  # the section of thresholds: statistic is the expression, value 1 means that it was kept
CHECK = "checks{check:"


def summary(figures: Sequence[Figure]) -> dict[str, Any]:
    """The columns of ``summaries`` that k6 knows of all requests of a run, those of setup and teardown among them.

    `success` is the share of responses that the script expected (codes 200 to 399 unless it says otherwise). k6 counts
    neither codes nor successes per second.
    """
    whole = {(figure.metric, figure.statistic): figure.value for figure in figures if not figure.section}
    found: dict[str, Any] = {
        column: value
        for (metric, statistic), value in whole.items()
        if metric == DURATION and (column := latency_column(statistic))
    }
    if (REQUESTS, "count") in whole:
        found["requests"] = int(whole[REQUESTS, "count"])
    success = _success(whole)
    if success is not None:
        found["success"] = success
    return found


def _success(whole: dict[tuple[str, str], float]) -> float | None:
    """From counts, which are more exact than a rounded share. k6 calls a rate's ones passes."""
    failed = next((whole[_FAILED, name] for name in ("passes", "matches") if (_FAILED, name) in whole), None)
    total = whole.get((_FAILED, "total"))
    if total is None and failed is not None and (_FAILED, "fails") in whole:
        total = failed + whole[_FAILED, "fails"]
    if failed is not None and total:
        return min(1.0, max(0.0, 1 - failed / total))
    return None


def check_metric(name: str) -> str:
    """A check's name among the metrics, as k6 calls the submetric of one check."""
    return f"{CHECK}{name}}}"


FORMATS = {
    "k6.summary.json": Format("k6", report=report, resolution_ns=1, begins=rb'(?s)\s*\{.*"metrics"\s*:', phases=True),
}
