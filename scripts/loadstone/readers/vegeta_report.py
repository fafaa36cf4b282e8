"""Vegeta's own report of a run, as JSON (``vegeta report -type json``) or as text (``vegeta report``).

A line of the text is a name, the names of its figures in brackets, and the figures:

    Latencies     [mean, 50, 95, 99, max]    44.431828ms, 50.783723ms, 59.100058ms, 107.767342ms, 448.815162ms

The figures are taken by their names, never by position: version 12.8 put ``min`` first and ``90`` between. Version 7
and later round a duration to its next smaller unit. ``Duration`` is from the first request to the last (``attack``)
and to the last answer (``total``).
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from loadstone.readers.base import (
    Figure,
    Format,
    Problems,
    Report,
    duration_ns,
    instant,
    json_number,
    json_object,
    latency_column,
    number,
)
from loadstone.readers.stream import read_object, text_reader

# --- JSON -------------------------------------------------------------------------------------------------------------


def json_report(path: Path, problems: Problems) -> Report | None:
    """What vegeta reports of a run; None when the file can't be read.

    Latencies in ns as estimated by vegeta, `throughput` in successes/s, `success` as a share. What is absent is None.
    `facts` may hold ``duration_s``, from the first request's start to the last's.
    """
    found = read_object(path, problems, "vegeta report")
    if found is None:
        return None
    if not isinstance(found.get("latencies"), dict):
        problems.damaged = "it is not a valid vegeta report"
        return None
    duration_ns = json_number(found.get("duration"))
    facts = {} if duration_ns is None else {"duration_s": repr(duration_ns / 1e9)}
    return Report(summary=_json_summary(found), facts=facts)


def _json_summary(report: dict[str, Any]) -> dict[str, Any]:
    codes = json_object(report.get("status_codes"))
    requests = json_number(report.get("requests"))
    return {
        "requests": None if requests is None else int(requests),
        "success": json_number(report.get("success")),
        **{
            column: json_number(value)
            for name, value in report["latencies"].items()
            if (column := latency_column(name))
        },
        "throughput": json_number(report.get("throughput")),
        "status_codes": {code: int(count) for code, count in codes.items() if json_number(count) is not None},
        "started_at": _instant(report.get("earliest")),
    }


def _instant(value: object) -> str | None:
    """The time as ISO 8601 in UTC; vegeta reports year 1 when there was no request."""
    try:
        started = instant(str(value))
    except (ValueError, OverflowError):
        return None
    return started.isoformat() if started.year > 1 else None


# --- text -------------------------------------------------------------------------------------------------------------

_LINE = re.compile(r"[ \t]*([A-Z][a-z]+(?: [A-Z][a-z]+)?)[ \t]++\[([^\[\]]{1,200})\][ \t]*+(.*)")
_CODE = re.compile(r"([0-9]{1,3}):([0-9]{1,18})")
_DIGITS = 0.001  # of a duration, which is printed in few
_NAMES = ("Requests", "Duration", "Latencies", "Bytes In", "Bytes Out", "Success", "Status Codes")


def parse_text(text: str, problems: Problems) -> Report | None:
    """The one report in a text; other text may precede it, and lines may be indented.

    `Report.facts` has ``duration_s`` (from the first request's start to the last's). A line that can't be parsed is
    corrupt; its figures are absent. A report whose lines contradict each other is damaged. None when there is no
    report, or more than one.
    """
    lines = text.split("\n")
    matches = {number: _LINE.fullmatch(line.rstrip()) for number, line in enumerate(lines, 1)}
    found = {number: match for number, match in matches.items() if match and match[1] in _NAMES}
    names = [match[1] for match in found.values()]
    if not {"Requests", "Latencies"} & set(names):
        problems.damaged = problems.damaged or "it is not a vegeta text report"
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
    values = {(figure.metric, figure.statistic): figure.value for figure in figures}
    summary = _text_summary(values, "Status Codes" in names)
    _check_codes(summary, problems)
    _check_rate(values, problems)
    attack_ns = values.get(("Duration", "attack"))
    facts = {} if attack_ns is None else {"duration_s": repr(attack_ns / 1e9)}
    return Report(summary=summary, figures=figures, facts=facts)


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


_Values = dict[tuple[str, str], float]  # by line and statistic


def _text_summary(values: _Values, has_codes: bool) -> dict[str, Any]:
    columns = {"success": ("Success", "ratio"), "throughput": ("Requests", "throughput")}
    summary: dict[str, Any] = {column: values[name] for column, name in columns.items() if name in values}
    if ("Requests", "total") in values:
        summary["requests"] = int(values["Requests", "total"])
    for (line, statistic), value in values.items():
        name = f"p{statistic}" if statistic[:1].isdigit() else statistic
        if line == "Latencies" and (column := latency_column(name)):
            summary[column] = value
    if has_codes:
        summary["status_codes"] = {code: int(count) for (line, code), count in values.items() if line == "Status Codes"}
    return summary


def _check_codes(summary: dict[str, Any], problems: Problems) -> None:
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


def _check_rate(values: _Values, problems: Problems) -> None:
    """The rate is that of all requests over the time from the first to the last."""
    rate, requests = values.get(("Requests", "rate")), values.get(("Requests", "total"))
    lasted_ns = values.get(("Duration", "attack"))
    if rate is None or requests is None or not lasted_ns:  # of a single request it is no rate
        return
    if abs(rate - (sent := requests * 1e9 / lasted_ns)) > 0.005 + _DIGITS * sent:
        problems.damaged = problems.damaged or "its rate is not that of its requests and duration"


FORMATS = {
    "summary.json": Format(report=json_report, resolution_ns=1, begins=rb'\s*\{\s*"latencies"\s*:'),
    "vegeta.txt": Format(
        "vegeta", report=text_reader(parse_text), resolution_ns=1, contains=rb"^[ \t]*Requests[ \t]+\[total"
    ),
}
