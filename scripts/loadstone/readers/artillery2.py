"""What a report of Artillery 2.x says.

Its summaries are of sketches (DDSketch): percentiles are within 1 % of a latency that is itself in whole milliseconds,
``min``, ``max`` and ``count`` are exact. The report does not tell the phases.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from loadstone.readers.artillery_json import figure, mapping, number, to_ns
from loadstone.readers.base import Figure, Report

_RESPONSE_TIME = "http.response_time"
_CODES = "http.codes."
_TIMES = ("response_time", "session_length", "step.")  # parts of names of what is in ms
_COLUMNS = {
    "min": "min_ns",
    "mean": "mean_ns",
    "median": "p50_ns",
    "p75": "p75_ns",
    "p90": "p90_ns",
    "p95": "p95_ns",
    "p99": "p99_ns",
    "p999": "p999_ns",
    "max": "max_ns",
}


def report(aggregate: dict[str, Any]) -> Report:
    """The whole run, all its phases together, but for its periods' figures."""
    counters = mapping(aggregate, "counters")
    times = mapping(_summaries(aggregate), _RESPONSE_TIME)
    summary: dict[str, Any] = {
        column: to_ns(value)
        for statistic, column in _COLUMNS.items()
        if (value := number(times.get(statistic))) is not None
    }
    codes = {
        name.removeprefix(_CODES): int(count)
        for name, value in counters.items()
        if name.startswith(_CODES) and (count := number(value))
    }
    summary["status_codes"] = codes
    requests = number(counters.get("http.requests"))
    if requests is not None:
        summary["requests"] = int(requests)
        if requests and codes:
            good = sum(count for code, count in codes.items() if code[:1] in ("2", "3") and len(code) == 3)
            summary["success"] = min(1.0, good / int(requests))
    found = Report(summary=summary, figures=list(figures("", aggregate)))
    first, last = number(aggregate.get("firstMetricAt")), number(aggregate.get("lastMetricAt"))
    if first is not None and (started := _instant(first)):
        found.said["started_at"] = started
    if first is not None and last is not None and last > first:
        found.said["duration_s"] = f"{float((last - first) / 1000):g}"
    return found


def figures(section: str, content: dict[str, Any]) -> Iterator[Figure]:
    """Every figure of the aggregate or of a period, times in ns."""
    for name, value in mapping(content, "counters").items():
        yield from figure(section, name, "count", value, "bytes" if name.endswith("_bytes") else "")
    for name, value in mapping(content, "rates").items():
        yield from figure(section, name, "rate", value, "requests/s" if name == "http.request_rate" else "1/s")
    for name, statistics in _summaries(content).items():
        is_time = any(part in name for part in _TIMES)
        for statistic, value in statistics.items() if isinstance(statistics, dict) else ():
            yield from figure(section, name, statistic, value, "ns" if is_time and statistic != "count" else "")


def section(content: dict[str, Any]) -> str:
    """What a period's figures are filed under: the time at which it began."""
    period = content.get("period")
    if isinstance(period, str) and period.isascii() and period.isdecimal() and len(period) < 18:
        period = int(period)
    known = number(period)
    return (_instant(known) if known is not None else None) or ""


def _summaries(content: dict[str, Any]) -> dict[str, Any]:
    return mapping(content, "summaries") or mapping(content, "histograms")


def _instant(milliseconds: Any) -> str | None:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    try:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=float(milliseconds))
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds")
