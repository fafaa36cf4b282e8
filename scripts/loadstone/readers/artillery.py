"""Artillery's report (``artillery run --output``), of 1.x or 2.x: recognized by what it holds.

Both are one JSON object: ``aggregate`` of the whole run and ``intermediate``, one object per period (10 s by
default). 1.x keeps the latency of every response in ``intermediate[].latencies``, 2.x only summaries per period.

Latency is the time from the request's last byte sent to the response's first byte, without connecting (``firstByte`` of
the HTTP library's timings, since 1.7); that library's clock has whole milliseconds (`RESOLUTION_NS`). Requests without
a response are only in the counts of errors: they have no latency, and no row.

Artillery dates periods, not requests, so phases are uncertain: a period on the border of a phase counts in neither.
Such a run has no number of expected requests, and the declared number must lie between the two counts.
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from loadstone.readers.base import (
    SCHEMA,
    Figure,
    Format,
    Generator,
    Phase,
    Problems,
    Report,
    batch_of,
    bounded,
    json_number,
    json_object,
    latency_column,
    ms_to_ns,
)
from loadstone.readers.json_stream import Document, read_document

RESOLUTION_NS = 1_000_000
ARTILLERY_SCHEMA = SCHEMA.append(pa.field("phase", pa.string()))

MOST_FIGURES = 200_000  # those of a day of periods
_MOST_NS = 1 << 62
_MOST_CODE = 1 << 31


@dataclass
class _Outline:
    """All of a report but its latencies, in memory that hardly grows with it. The arrays have a value per period."""

    aggregate: dict[str, Any] = field(default_factory=dict)
    is_second: bool | None = None  # 2.x; None: nothing shows which
    ended_s: "array[float]" = field(default_factory=lambda: array("d"))
    codes: "array[int]" = field(default_factory=lambda: array("i"))  # the only code of its responses, or -1
    last_arrivals: int = -1  # the last period in which users arrived
    figures: list[Figure] = field(default_factory=list)

    def add(self, kind: str, content: dict[str, Any]) -> None:
        """Take what a period or the aggregate says."""
        if self.is_second is None:
            self.is_second = _is_second(content)
        if kind == "aggregate":
            self.aggregate = content
            return
        self.ended_s.append(_instant_s(content.get("timestamp")))
        self.codes.append(_only_code(content))
        if json_number(content.get("scenariosCreated")):
            self.last_arrivals = len(self.ended_s) - 1
        found = (_second_figures if self.is_second else _first_figures)(_section(content), content)
        self.figures += islice(found, max(0, MOST_FIGURES + 1 - len(self.figures)))


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ARTILLERY_SCHEMA` from a report of 1.x, plain or ``.zst``; none from one of 2.x.

    `sent_at` and `code` are null where the report does not give them: since 1.7 it gives nothing but latencies, and a
    code is known only in a period whose responses all had the same. (Once, an entry was the time at which the response
    came, the user's id, the latency and the code.) `phase` is what `_period_phases` finds; null: unknown.
    """
    outline = _outline(path, Problems())
    if outline.is_second:
        return
    phases = _period_phases(outline)
    period = seq = 0
    for kind, content in _parts(path, problems):
        if kind == "period":
            period += 1
        elif kind == "latencies":
            # Of the last period of a truncated file nothing else is known.
            code, phase = (outline.codes[period], phases[period]) if period < len(phases) else (-1, None)
            batch = _batch(content, code, seq, phase)
            problems.corrupt_records += len(content) - batch.num_rows
            seq += batch.num_rows
            if batch.num_rows:
                yield batch
    completed = json_number(outline.aggregate.get("requestsCompleted"))
    if not problems.texts() and completed is not None and completed != seq:
        problems.damaged = f"it counts {completed} completed requests and holds {seq} latencies"


def report(path: Path, problems: Problems) -> Report | None:
    """What Artillery reports of the run, and of each period (section: the period's time as the report gives it).

    `facts` holds ``load_model`` and, where the report has them, ``started_at`` and ``duration_s``; of 1.x also
    ``across_phases``: how many periods and responses are of no single phase.
    """
    outline = _outline(path, problems)
    if outline.is_second is None:
        if not problems.truncated:
            problems.damaged = problems.damaged or "it is not a valid Artillery report"
        return None
    found = _second_report(outline.aggregate) if outline.is_second else _first_report(outline)
    found.figures += bounded(outline.figures, MOST_FIGURES, problems)
    found.facts["load_model"] = "open"
    return found


def _outline(path: Path, problems: Problems) -> _Outline:
    outline = _Outline()
    for kind, content in _parts(path, problems):
        if kind != "latencies":
            outline.add(kind, content)
    return outline


def _is_second(content: dict[str, Any]) -> bool | None:
    if any(isinstance(content.get(key), dict) for key in ("summaries", "histograms", "rates")):
        return True
    return False if isinstance(content.get("latency"), dict) or "scenariosCreated" in content else None


def _section(period: dict[str, Any]) -> str:
    """What a period's figures are filed under: the time at which it ended (1.x) or began (2.x)."""
    if isinstance(ended := period.get("timestamp"), str):
        return ended
    began = period.get("period")
    if isinstance(began, str) and began.isascii() and began.isdecimal() and len(began) < 18:
        began = int(began)
    return _instant(json_number(began)) or ""


# --- the parts of a report --------------------------------------------------------------------------------------------

_CHUNK_ENTRIES = 1 << 14
_MOST_BYTES = 8 << 20  # of a period besides its latencies


# What kind of part it is, and its content. ``latencies``: some entries of the ``latencies`` of the period that comes
# next, as they are. ``period``, ``aggregate``: that object, without its ``latencies``.
_Part = tuple[str, Any]


def _parts(path: Path, problems: Problems) -> Iterator[_Part]:
    """The parts of a report, in its order, up to where it can be read; `problems` then say why."""
    return read_document(path, problems, "Artillery report", _MOST_BYTES, _parts_of)


def _parts_of(document: Document) -> Iterator[_Part]:
    for key, *first in document.members():
        if key == "intermediate" and first[0] == "start_array":
            for element in document.elements():
                if element[0] == "start_map":
                    yield from _object("period", document)
                else:
                    document.value(*element)
        elif key == "aggregate" and first[0] == "start_map":
            # Before 1.6 it repeated all latencies.
            yield from (part for part in _object("aggregate", document) if part[0] == "aggregate")
        else:
            document.value(*first)


def _object(kind: str, document: Document) -> Iterator[_Part]:
    """The latencies of an object whose brace has been read, then the object."""
    found: dict[str, Any] = {}
    for key, *first in document.members():
        if key == "latencies" and first[0] == "start_array":
            yield from _latencies(document)
        else:
            found[key] = document.value(*first)
    document.part_bytes = 0
    yield kind, found


def _latencies(document: Document) -> Iterator[_Part]:
    entries: list[Any] = []
    try:
        for event, value in document.events:
            document.part_bytes = 0
            if event == "number":
                entries.append(value)
            elif event == "end_array":
                break
            else:
                entry = document.value(event, value)
                # Lists would keep the garbage collector busy.
                entries.append(tuple(entry) if event == "start_array" else entry)
            if len(entries) == _CHUNK_ENTRIES:
                yield "latencies", entries
                entries = []
    except Exception:  # whatever went wrong, the entries before it are kept
        yield "latencies", entries[: -1 if document.has_ended else None]
        raise
    yield "latencies", entries


def _figures(section: str, metric: str, values: dict[str, Any], unit: str) -> Iterator[Figure]:
    """The statistics of a metric that are numbers; in ms where the unit is to be ns."""
    for statistic, value in values.items():
        if (known := json_number(value)) is not None:
            of = "" if statistic == "count" and unit != "bytes" else unit
            number = ms_to_ns(str(known)) if of == "ns" else float(known)
            yield Figure(section, metric, statistic, number, of, str(known))


# --- rows -------------------------------------------------------------------------------------------------------------


def _row(entry: object, only_code: int | None) -> tuple[int | None, int, int | None] | None:
    """When it was sent, latency and code, of one latency or one entry of before 1.7; None when it is corrupt."""
    if not isinstance(entry, tuple):
        latency_ns = _latency(entry)
        return None if latency_ns is None else (None, latency_ns, only_code)
    if len(entry) != 4:
        return None
    ended_ms, latency_ns, code = json_number(entry[0]), _latency(entry[2]), json_number(entry[3])
    if ended_ms is None or latency_ns is None or code is None:
        return None
    sent_at = round(ended_ms * 1_000_000) - latency_ns
    return (sent_at, latency_ns, int(code)) if 0 <= sent_at < _MOST_NS and 0 <= code < _MOST_CODE else None


def _latency(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_NS:
        return round(value)
    return None


def _batch(entries: list[Any], only_code: int, first: int, phase: str | None) -> pa.RecordBatch:
    """The entries that are not corrupt."""
    known_code = None if only_code < 0 else only_code
    if set(map(type, entries)) == {int} and min(entries) >= 0 and max(entries) < _MOST_NS:  # as nearly all are
        latency_ns = pa.array(np.array(entries, np.int64))
        sent_at = pa.nulls(len(entries), pa.int64())
        code = pa.repeat(pa.scalar(known_code, pa.int64()), len(entries))
    else:
        rows = [row for entry in entries if (row := _row(entry, known_code)) is not None]
        sent_at, latency_ns, code = (pa.array([row[k] for row in rows], pa.int64()) for k in range(3))
    count = len(latency_ns)
    columns = {
        "seq": np.arange(first, first + count),
        "sent_at": sent_at,
        "latency_ns": latency_ns,
        "code": code,
        "error": pa.repeat("", count),
        "phase": pa.repeat(pa.scalar(phase, pa.string()), count),
    }
    return batch_of(columns, ARTILLERY_SCHEMA)


def _summary(latency: Mapping[str, Any], counts: Mapping[str, Any], requests: float | None) -> dict[str, Any]:
    """Columns of ``summaries``: those of latency, and what the responses come to by code (`counts`)."""
    summary: dict[str, Any] = {
        column: ms_to_ns(str(value))
        for statistic, given in latency.items()
        if (column := latency_column(statistic)) and (value := json_number(given)) is not None
    }
    codes = {code: int(count) for code, value in counts.items() if (count := json_number(value))}
    if requests is not None:
        summary["requests"] = int(requests)
        if requests and codes:
            good = sum(count for code, count in codes.items() if code[:1] in ("2", "3") and len(code) == 3)
            summary["success"] = min(1.0, good / int(requests))
    return summary | {"status_codes": codes}


# --- 1.x --------------------------------------------------------------------------------------------------------------

# Percentiles are those of stats-lite: linear between order statistics at n * p - 0.5 (type 5 of Hyndman & Fan 1996), in
# ms rounded to one decimal.
_JITTER_S = 0.05  # of the timers that end periods

_FIRST_TIMES = ("latency", "scenarioDuration")
_FIRST_COUNTS = (
    "scenariosCreated",
    "scenariosCompleted",
    "scenariosAvoided",
    "requestsCompleted",
    "matches",
    "concurrency",
    "pendingRequests",
)
_FIRST_MAPS = ("scenarioCounts", "codes", "errors", "counters")


def _first_report(outline: _Outline) -> Report:
    """The whole run but for its periods' figures. `requests` counts those sent, where the report says it."""
    aggregate = outline.aggregate
    sent = json_number(json_object(aggregate.get("rps")).get("count"))
    requests = json_number(aggregate.get("requestsCompleted")) if sent is None else sent
    summary = _summary(json_object(aggregate.get("latency")), json_object(aggregate.get("codes")), requests)
    found = Report(summary=summary, figures=list(_first_figures("", aggregate)), phases=phases(aggregate))
    if found.phases and all(phase.duration_s is not None for phase in found.phases):
        found.facts["duration_s"] = f"{sum(phase.duration_s or 0 for phase in found.phases):g}"
    started = _started_s(outline.ended_s)
    if started is not None and started >= 0:
        found.facts["started_at"] = (datetime.fromtimestamp(0, UTC) + timedelta(seconds=started)).isoformat()
    if len(found.phases) > 1:
        across = sum(" / " in (name or "") for name in _period_phases(outline))
        found.facts["across_phases"] = str(across)
    return found


def _first_figures(section: str, content: dict[str, Any]) -> Iterator[Figure]:
    """Every figure of the aggregate or of a period, times in ns."""
    for metric in _FIRST_TIMES:
        yield from _figures(section, metric, json_object(content.get(metric)), "ns")
    yield from _figures(section, "rps", json_object(content.get("rps")), "requests/s")
    for metric in _FIRST_COUNTS:
        yield from _figures(section, metric, {"count": content.get(metric)}, "")
    for metric in _FIRST_MAPS:
        yield from _figures(section, metric, json_object(content.get(metric)), "")
    for name, statistics in json_object(content.get("customStats")).items():
        yield from _figures(section, f"customStats.{name}", json_object(statistics), "")


def _only_code(content: dict[str, Any]) -> int:
    """The code of all responses of a period, -1 when they had several or it is not known."""
    codes = [code for code, count in json_object(content.get("codes")).items() if json_number(count)]
    known = len(codes) == 1 and codes[0].isascii() and codes[0].isdecimal() and len(codes[0]) < 10
    return int(codes[0]) if known and int(codes[0]) < _MOST_CODE else -1


# --- 1.x: phases ------------------------------------------------------------------------------------------------------


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
    known = json_number(value)
    return None if known is None or known < 0 else float(known)


def _period_phases(outline: _Outline) -> list[str | None]:
    """The phase of each period; ``A / B`` of one in which A may have given way to B; None: nothing is known.

    The report dates periods, not requests, and a phase begins when the one before has launched its last user, which is
    later than declared. How much later is not known, but all of it together has an upper bound: by the end of the last
    period in which users arrived, every phase had ended. So each change of phase lies between its declared time and
    that much later, and every period that overlaps such a span may hold requests of both.
    """
    declared, ended_s = phases(outline.aggregate), outline.ended_s
    if len(declared) < 2:
        return [declared[0].name if declared else None] * len(ended_s)
    started = _started_s(ended_s)
    if started is None or any(phase.duration_s is None for phase in declared):
        return [None] * len(ended_s)
    ends = [started]
    for phase in declared:
        ends.append(ends[-1] + (phase.duration_s or 0))
    late_s = max(0.0, ended_s[outline.last_arrivals] - ends[-1]) if outline.last_arrivals >= 0 else 0.0
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


def _instant_s(value: object) -> float:
    """A time of the report as seconds since 1970; NaN when it is not a time."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return math.nan if moment is None or moment.tzinfo is None else moment.timestamp()
    except (ValueError, OverflowError):
        return math.nan


# --- 2.x --------------------------------------------------------------------------------------------------------------

# Its summaries are of sketches (DDSketch): percentiles are within 1 % of a latency that is itself in whole
# milliseconds, ``min``, ``max`` and ``count`` are exact. The report does not give the phases.
_RESPONSE_TIME = "http.response_time"
_CODES = "http.codes."
_SECOND_TIMES = ("response_time", "session_length", "step.")  # parts of names of what is in ms


def _second_report(aggregate: dict[str, Any]) -> Report:
    """The whole run, all its phases together, but for its periods' figures."""
    counters = json_object(aggregate.get("counters"))
    times = json_object(_summaries(aggregate).get(_RESPONSE_TIME))
    codes = {name.removeprefix(_CODES): count for name, count in counters.items() if name.startswith(_CODES)}
    summary = _summary(times, codes, json_number(counters.get("http.requests")))
    found = Report(summary=summary, figures=list(_second_figures("", aggregate)))
    first, last = json_number(aggregate.get("firstMetricAt")), json_number(aggregate.get("lastMetricAt"))
    if started := _instant(first):
        found.facts["started_at"] = started
    if first is not None and last is not None and last > first:
        found.facts["duration_s"] = f"{float((last - first) / 1000):g}"
    return found


def _second_figures(section: str, content: dict[str, Any]) -> Iterator[Figure]:
    """Every figure of the aggregate or of a period, times in ns."""
    for name, value in json_object(content.get("counters")).items():
        yield from _figures(section, name, {"count": value}, "bytes" if name.endswith("_bytes") else "")
    for name, value in json_object(content.get("rates")).items():
        yield from _figures(section, name, {"rate": value}, "requests/s" if name == "http.request_rate" else "1/s")
    for name, statistics in _summaries(content).items():
        unit = "ns" if any(part in name for part in _SECOND_TIMES) else ""
        yield from _figures(section, name, json_object(statistics), unit)


def _summaries(content: dict[str, Any]) -> dict[str, Any]:
    return json_object(content.get("summaries")) or json_object(content.get("histograms"))


def _instant(milliseconds: float | None) -> str | None:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    if milliseconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds")


FORMATS = {
    "artillery.json": Format(
        "artillery",
        requests=read,
        report=report,
        resolution_ns=RESOLUTION_NS,
        begins=rb'\s*\{\s*"aggregate"\s*:',
        phases=True,
    ),
}

GENERATORS = (
    Generator(
        generator="artillery",
        load_models=("open",),
        starts_at="the request has been sent",
        ends_at="the first byte of the response has come",
        connecting="not included",
        stamp="none",
        resolution_ns=1e6,
        source="source of 1.7.6 and 2.0.34: core/lib/engine_http.js (res.timings.phases.firstByte of got, which takes "
        "its times from Date.now, in ms)",
        home="https://www.artillery.io",
    ),
)
