"""Vegeta's report as text (``vegeta report``): what the tool itself says of a run.

A line is a name, the names of its figures in brackets, and the figures:

    Latencies     [mean, 50, 95, 99, max]    44.431828ms, 50.783723ms, 59.100058ms, 107.767342ms, 448.815162ms

The figures are taken by their names, never by position: version 12.8 put ``min`` first and ``90`` between. Version 7
and later round a duration to its next smaller unit. ``Duration`` is from the first request to the last (``attack``)
and to the last answer (``total``).
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from loadstone.readers.base import Figure, Problems, Report
from loadstone.readers.printed import duration_ns, number, read_text

_LINE = re.compile(r"[ \t]*([A-Z][a-z]+(?: [A-Z][a-z]+)?)[ \t]++\[([^\[\]]{1,200})\][ \t]*+(.*)")
_CODE = re.compile(r"([0-9]{1,3}):([0-9]{1,18})")
_ERRORS = "Error Set:"
_DIGITS = 0.001  # of a duration, which is printed in few
_NAMES = ("Requests", "Duration", "Latencies", "Bytes In", "Bytes Out", "Success", "Status Codes")
_LATENCIES = {
    "mean": "mean_ns",
    "min": "min_ns",
    "50": "p50_ns",
    "75": "p75_ns",
    "90": "p90_ns",
    "95": "p95_ns",
    "99": "p99_ns",
    "99.9": "p999_ns",
    "max": "max_ns",
}


def report(path: Path, problems: Problems) -> Report | None:
    """The report in ``.txt`` or ``.txt.zst``; see `parse`."""
    text = read_text(path, problems)
    return None if text is None else parse(text, problems)


def parse(text: str, problems: Problems) -> Report | None:
    """The one report in a text, whatever stands before it; lines may be indented.

    `Report.said` has ``duration_s`` (from the first request's start to the last's) and ``errors``, the texts of the
    error set, one per line. A line that can't be understood is corrupt; its figures are absent. A report whose lines
    contradict each other is damaged. None when there is no report, or more than one.
    """
    lines = text.split("\n")
    found = {number: match for number, line in enumerate(lines, 1) if (match := _LINE.fullmatch(line.rstrip()))}
    found = {line: match for line, match in found.items() if match[1] in _NAMES}
    names = [match[1] for match in found.values()]
    if not {"Requests", "Latencies"} & set(names):
        problems.damaged = problems.damaged or "it is no text report of vegeta"
        return None
    if len(set(names)) < len(names):
        problems.damaged = "it holds more than one report"
        return None
    missing = [name for name in _NAMES if name not in names]
    if missing:
        problems.truncated = problems.truncated or f"it lacks its line {missing[0]}"
        found.pop(len(lines), None)  # has no line end, so it may lack digits
    figures = []
    for line, match in found.items():
        read = _figures(match[1], match[2], match[3])
        if read is None:
            problems.corrupt(line)
        figures += read or []
    summary = _summary(figures, "Status Codes" in names)
    _check(summary, problems)
    _check_rate(figures, problems)
    return Report(summary=summary, figures=figures, said=_said(figures, lines))


def _figures(metric: str, statistics: str, printed: str) -> list[Figure] | None:
    """The figures of one line; None when one of them is not what its name says."""
    if metric == "Status Codes":
        codes = [_CODE.fullmatch(pair) for pair in printed.split()]
        if not all(codes):
            return None
        return [Figure("", metric, code[1], float(code[2]), "", code[2]) for code in codes if code]
    names, texts = statistics.split(", "), printed.split(", ")
    if len(names) != len(texts) or len(set(names)) != len(names):
        return None
    found = []
    for name, text in zip(names, texts, strict=True):
        value, unit = _value(metric, name, text)
        if value is None:
            return None
        found.append(Figure("", metric, name, float(value), unit, text))
    return found


def _value(metric: str, statistic: str, text: str) -> tuple[Fraction | None, str]:
    if metric in ("Duration", "Latencies"):
        return duration_ns(text), "ns"
    if metric == "Success":
        percent = number(text, "%")
        return None if percent is None or percent > 100 else percent / 100, "share"
    value = number(text)
    if statistic == "total" and value is not None and value.denominator != 1:
        value = None
    if metric == "Requests":
        return value, "" if statistic == "total" else "requests/s"
    return value, "bytes"


def _summary(figures: list[Figure], has_codes: bool) -> dict[str, Any]:
    by_name = {(figure.metric, figure.statistic): figure.value for figure in figures}
    columns = {
        "requests": ("Requests", "total"),
        "success": ("Success", "ratio"),
        **{column: ("Latencies", statistic) for statistic, column in _LATENCIES.items()},
        "throughput": ("Requests", "throughput"),
    }
    summary: dict[str, Any] = {column: by_name[name] for column, name in columns.items() if name in by_name}
    if "requests" in summary:
        summary["requests"] = int(summary["requests"])
    if has_codes:
        codes = [figure for figure in figures if figure.metric == "Status Codes"]
        summary["status_codes"] = {figure.statistic: int(figure.value) for figure in codes}
    return summary


def _check(summary: dict[str, Any], problems: Problems) -> None:
    """Every request has one code, and those from 200 to 399 are its successes; a cut figure shows by that.

    Codes that bear the printed ratio out take its place.
    """
    codes, requests = summary.get("status_codes"), summary.get("requests")
    if codes is None or requests is None or problems.corrupt_records:
        return
    if sum(codes.values()) != requests:
        problems.damaged = problems.damaged or "its status codes do not add up to its requests"
        return
    successes = sum(count for code, count in codes.items() if 200 <= int(code) < 400)
    if requests and "success" in summary:
        if abs(successes / requests - summary["success"]) > 0.00006:
            problems.damaged = problems.damaged or "its success ratio is not that of its status codes"
        else:
            summary["success"] = successes / requests  # it is printed in four digits


def _check_rate(figures: list[Figure], problems: Problems) -> None:
    """The rate is that of all requests over the time from the first to the last."""
    by_name = {(figure.metric, figure.statistic): figure.value for figure in figures}
    rate, requests = by_name.get(("Requests", "rate")), by_name.get(("Requests", "total"))
    lasted_ns = by_name.get(("Duration", "attack"))
    if rate is None or requests is None or not lasted_ns:  # of a single request it is no rate
        return
    if abs(rate - (sent := requests * 1e9 / lasted_ns)) > 0.005 + _DIGITS * sent:
        problems.damaged = problems.damaged or "its rate is not that of its requests and duration"


def _said(figures: list[Figure], lines: list[str]) -> dict[str, str]:
    said = {}
    for figure in figures:
        if (figure.metric, figure.statistic) == ("Duration", "attack"):
            said["duration_s"] = repr(figure.value / 1e9)
    start = next((position for position, line in enumerate(lines, 1) if line.strip() == _ERRORS), len(lines))
    errors = [line.strip() for line in lines[start:] if line.strip()]
    if errors:
        said["errors"] = "\n".join(errors)
    return said
