"""What a report of Artillery 1.x says: its figures, and which period is of which phase.

Percentiles are those of stats-lite: linear between order statistics at n * p - 0.5 (type 5 of Hyndman & Fan 1996), in
ms rounded to one decimal.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from loadstone.readers.artillery_json import figure, mapping, number, to_ns
from loadstone.readers.base import Figure, Phase, Report

_JITTER_S = 0.05  # of the timers that end periods
_MOST_CODE = 1 << 31

_COLUMNS = {"min": "min_ns", "median": "p50_ns", "p95": "p95_ns", "p99": "p99_ns", "max": "max_ns"}
_TIMES = ("latency", "scenarioDuration")
_COUNTS = (
    "scenariosCreated",
    "scenariosCompleted",
    "scenariosAvoided",
    "requestsCompleted",
    "matches",
    "concurrency",
    "pendingRequests",
)
_MAPS = ("scenarioCounts", "codes", "errors", "counters")


def report(aggregate: dict[str, Any], ended_s: Sequence[float], last_arrivals: int) -> Report:
    """The whole run but for its periods' figures. `requests` counts those sent, where that is told."""
    sent = number(mapping(aggregate, "rps").get("count"))
    requests = number(aggregate.get("requestsCompleted")) if sent is None else sent
    latency = mapping(aggregate, "latency")
    codes = {code: int(count) for code, value in mapping(aggregate, "codes").items() if (count := number(value))}
    summary: dict[str, Any] = {
        column: to_ns(value)
        for statistic, column in _COLUMNS.items()
        if (value := number(latency.get(statistic))) is not None
    }
    if requests is not None:
        summary["requests"] = int(requests)
        if requests and codes:
            good = sum(count for code, count in codes.items() if code[:1] in ("2", "3") and len(code) == 3)
            summary["success"] = min(1.0, good / int(requests))
    summary["status_codes"] = codes
    found = Report(summary=summary, figures=list(figures("", aggregate)), phases=phases(aggregate))
    if found.phases and all(phase.duration_s is not None for phase in found.phases):
        found.said["duration_s"] = f"{sum(phase.duration_s or 0 for phase in found.phases):g}"
    started = _started_s(ended_s)
    if started is not None and started >= 0:
        found.said["started_at"] = (datetime.fromtimestamp(0, UTC) + timedelta(seconds=started)).isoformat()
    across = sum(" / " in (name or "") for name in period_phases(aggregate, ended_s, last_arrivals))
    if len(found.phases) > 1:
        found.said["across_phases"] = str(across)
    return found


def figures(section: str, content: dict[str, Any]) -> Iterator[Figure]:
    """Every figure of the aggregate or of a period, times in ns."""
    for metric in _TIMES:
        yield from _statistics(section, metric, mapping(content, metric), "ns")
    for statistic, value in mapping(content, "rps").items():
        yield from figure(section, "rps", statistic, value, "requests/s" if statistic == "mean" else "")
    for metric in _COUNTS:
        yield from figure(section, metric, "count", content.get(metric), "")
    for metric in _MAPS:
        yield from _statistics(section, metric, mapping(content, metric), "")
    for name, statistics in mapping(content, "customStats").items():
        if isinstance(statistics, dict):
            yield from _statistics(section, f"customStats.{name}", statistics, "")


def section(content: dict[str, Any]) -> str:
    """What a period's figures are filed under: the time at which it ended."""
    ended = content.get("timestamp")
    return ended if isinstance(ended, str) else ""


def _statistics(section: str, metric: str, values: dict[str, Any], unit: str) -> Iterator[Figure]:
    for statistic, value in values.items():
        yield from figure(section, metric, statistic, value, unit)


def only_code(content: dict[str, Any]) -> int:
    """The code of all responses of a period, -1 when they had several or it is not told."""
    codes = [code for code, count in mapping(content, "codes").items() if number(count)]
    known = len(codes) == 1 and codes[0].isascii() and codes[0].isdecimal() and len(codes[0]) < 10
    return int(codes[0]) if known and int(codes[0]) < _MOST_CODE else -1


# --- phases -----------------------------------------------------------------------------------------------------------


def phases(aggregate: dict[str, Any]) -> list[Phase]:
    """The phases as they were declared; one without a name is called as Artillery announces it (``phase 0``)."""
    declared = aggregate.get("phases")
    return [
        Phase(
            name=str(phase["name"]) if isinstance(phase.get("name"), str) and phase["name"] else f"phase {index}",
            duration_s=_declared(phase.get("duration", phase.get("pause"))),
            rate=_rate(phase),
            to_rate=_declared(phase.get("rampTo")),
        )
        for index, phase in enumerate(declared if isinstance(declared, list) else [])
        if isinstance(phase, dict)
    ]


def _rate(phase: dict[str, Any]) -> float | None:
    if "pause" in phase:
        return 0.0
    count, duration_s = _declared(phase.get("arrivalCount")), _declared(phase.get("duration"))
    return count / duration_s if count is not None and duration_s else _declared(phase.get("arrivalRate"))


def _declared(value: object) -> float | None:
    """A number of the declaration, which may have been written as a text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    known = number(value)
    return None if known is None or known < 0 else float(known)


def period_phases(aggregate: dict[str, Any], ended_s: Sequence[float], last_arrivals: int) -> list[str | None]:
    """The phase of each period; ``A / B`` of one in which A may have given way to B; None: nothing is known.

    The report dates periods, not requests, and a phase begins when the one before has launched its last user, which is
    later than declared. How much later is not told, but all of it together has an upper bound: by the end of the last
    period in which users arrived, every phase had ended. So each change of phase lies between its declared time and
    that much later, and every period that overlaps such a span may hold requests of both.
    """
    declared = phases(aggregate)
    if len(declared) < 2:
        return [declared[0].name if declared else None] * len(ended_s)
    started = _started_s(ended_s)
    if started is None or any(phase.duration_s is None for phase in declared):
        return [None] * len(ended_s)
    ends = [started]
    for phase in declared:
        ends.append(ends[-1] + (phase.duration_s or 0))
    late_s = max(0.0, ended_s[last_arrivals] - ends[-1]) if last_arrivals >= 0 else 0.0
    found: list[str | None] = []
    for begin_s, end_s in pairwise([started, *ended_s]):
        # Phase k was under way at some time between its declared begin and its declared end, made later.
        names = [
            phase.name
            for k, phase in enumerate(declared)
            if ends[k] < end_s - _JITTER_S and (k == len(declared) - 1 or ends[k + 1] + late_s > begin_s + _JITTER_S)
        ]
        found.append(" / ".join(names) if names else None)
    return found


def _started_s(ended_s: Sequence[float]) -> float | None:
    """When the run began: periods are ended by a timer that starts with it.

    None when there are too few to know its interval, or when they are out of order.
    """
    known = len(ended_s) >= 3 and all(map(math.isfinite, ended_s))
    if not known or any(after <= before for before, after in pairwise(ended_s)):
        return None
    return ended_s[0] - median(after - before for before, after in pairwise(ended_s[:-1]))


def instant_s(value: object) -> float:
    """A time of the report as seconds since 1970, not a number when it is none."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return math.nan if moment is None or moment.tzinfo is None else moment.timestamp()
    except (ValueError, OverflowError):
        return math.nan
