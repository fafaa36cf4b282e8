"""Vegeta's report as JSON (``vegeta report -type json``): what the tool itself says of a run."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.readers.base import Problems, Report
from loadstone.readers.stream import read_object

_MOST = 1e18  # far beyond any figure, within 64 bits
_LATENCIES = {
    "mean_ns": "mean",
    "min_ns": "min",
    "p50_ns": "50th",
    "p90_ns": "90th",
    "p95_ns": "95th",
    "p99_ns": "99th",
    "max_ns": "max",
}


def report(path: Path, problems: Problems) -> Report | None:
    """What vegeta reports of a run; None when the file can't be read.

    Latencies in ns as estimated by vegeta, `throughput` in successes/s, `success` as a share. What is absent is None.
    `said` may hold ``duration_s``, from the first request's start to the last's.
    """
    found = read_object(path, problems, "report of vegeta")
    if found is None:
        return None
    if not isinstance(found.get("latencies"), dict):
        problems.damaged = "it is no report of vegeta"
        return None
    duration_ns = _number(found.get("duration"))
    said = {} if duration_ns is None else {"duration_s": repr(duration_ns / 1e9)}
    return Report(summary=_summary(found), said=said)


def _summary(report: dict[str, Any]) -> dict[str, Any]:
    codes = report.get("status_codes")
    requests = _number(report.get("requests"))
    return {
        "requests": None if requests is None else int(requests),
        "success": _number(report.get("success")),
        **{column: _number(report["latencies"].get(key)) for column, key in _LATENCIES.items()},
        "throughput": _number(report.get("throughput")),
        "status_codes": {str(code): int(count) for code, count in codes.items() if _number(count) is not None}
        if isinstance(codes, dict)
        else {},
        "started_at": _instant(report.get("earliest")),
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > _MOST:
        return None
    return value


def _instant(value: object) -> str | None:
    """The time as ISO 8601 in UTC; vegeta reports year 1 when there was no request."""
    try:
        instant = datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return instant.isoformat() if instant.year > 1 else None
