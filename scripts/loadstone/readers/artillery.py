"""Artillery's report (``artillery run --output``), of 1.x or 2.x: told apart by what it holds.

Both are one JSON object: ``aggregate`` of the whole run and ``intermediate``, one object per period (10 s unless told
otherwise). 1.x keeps the latency of every response in ``intermediate[].latencies``, 2.x only summaries per period.

Latency is the time from the request's last byte sent to the response's first byte, without connecting (``firstByte`` of
the HTTP library's timings, since 1.7); that library's clock has whole milliseconds (`RESOLUTION_NS`). Requests that
got no response are in the counts of errors alone: they have no latency, and no row.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from loadstone.readers import artillery1, artillery2
from loadstone.readers.artillery_json import Unit, number, parts
from loadstone.readers.base import SCHEMA, Figure, Problems, Report

RESOLUTION_NS = 1_000_000
ARTILLERY_SCHEMA = SCHEMA.append(pa.field("phase", pa.string()))

MOST_FIGURES = 200_000  # those of a day of periods; what is more is counted and left out
_MOST_NS = 1 << 62
_MOST_CODE = 1 << 31

_Row = tuple[int | None, int, int | None]  # when it was sent, its latency, its code


@dataclass
class _Outline:
    """All of a report but its latencies, in memory that hardly grows with it. The arrays have a value per period."""

    aggregate: dict[str, Any] = field(default_factory=dict)
    is_second: bool | None = None  # 2.x; None: neither is to be seen
    ended_s: "array[float]" = field(default_factory=lambda: array("d"))
    codes: "array[int]" = field(default_factory=lambda: array("i"))  # the only code of its responses, or -1
    last_arrivals: int = -1  # the last period in which users arrived
    latencies: int = 0
    whole_ms: bool = True
    figures: list[Figure] = field(default_factory=list)
    figures_left_out: int = 0


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ARTILLERY_SCHEMA` from a report of 1.x, plain or ``.zst``; none from one of 2.x.

    `sent_at` and `code` are null where the report does not tell them: since 1.7 it gives nothing but latencies, and a
    code is known only in a period whose responses all had the same. (Once, an entry was the time at which the response
    came, the user's id, the latency and the code.) `phase` is what `artillery1.period_phases` tells; null: unknown.
    """
    outline = _outline(path, Problems())
    if outline.is_second:
        return
    phases = artillery1.period_phases(outline.aggregate, outline.ended_s, outline.last_arrivals)
    period = seq = 0
    for unit in parts(path, problems):
        if unit.kind == "period":
            period += 1
        elif unit.kind == "latencies":
            # The last period of a file that was cut off is one of which nothing else is known.
            known = period < len(phases)
            batch = _batch(
                unit.content,
                outline.codes[period] if known else -1,
                seq,
                phases[period] if known else None,
            )
            problems.corrupt_records += len(unit.content) - batch.num_rows
            seq += batch.num_rows
            if batch.num_rows:
                yield batch
    completed = number(outline.aggregate.get("requestsCompleted"))
    if not problems.texts() and completed is not None and completed != seq:
        problems.damaged = f"it counts {completed} completed requests and holds {seq} latencies"


def report(path: Path, problems: Problems) -> Report | None:
    """What Artillery reports of the run, and of each period (section: the period's time as the report gives it).

    `said` holds ``load_model``, ``resolution_ns`` and, where the report tells them, ``started_at`` and ``duration_s``;
    of 1.x also ``across_phases``: how many periods and responses are of no single phase.
    """
    outline = _outline(path, problems)
    if outline.is_second is None:
        if not problems.truncated:
            problems.damaged = problems.damaged or "it is no report of Artillery"
        return None
    if outline.is_second:
        found = artillery2.report(outline.aggregate)
    else:
        found = artillery1.report(outline.aggregate, outline.ended_s, outline.last_arrivals)
    found.figures += outline.figures
    found.said["load_model"] = "open"
    if outline.is_second or (outline.latencies and outline.whole_ms):
        found.said["resolution_ns"] = str(RESOLUTION_NS)
    if outline.figures_left_out:
        found.said["figures_left_out"] = str(outline.figures_left_out)
    return found


def _outline(path: Path, problems: Problems) -> _Outline:
    outline = _Outline()
    for unit in parts(path, problems):
        if unit.kind == "aggregate":
            outline.aggregate = unit.content
            outline.is_second = _is_second(unit.content, outline.is_second)
        elif unit.kind == "period":
            outline.is_second = _is_second(unit.content, outline.is_second)
            _add_period(outline, unit)
        elif unit.kind == "latencies":
            outline.latencies += len(unit.content)
            outline.whole_ms = outline.whole_ms and _is_whole_ms(unit.content)
    return outline


def _is_second(content: dict[str, Any], known: bool | None) -> bool | None:
    if known is not None:
        return known
    if any(isinstance(content.get(key), dict) for key in ("summaries", "histograms", "rates")):
        return True
    return False if isinstance(content.get("latency"), dict) or "scenariosCreated" in content else None


def _add_period(outline: _Outline, unit: Unit) -> None:
    content = unit.content
    outline.ended_s.append(artillery1.instant_s(content.get("timestamp")))
    outline.codes.append(artillery1.only_code(content))
    if number(content.get("scenariosCreated")):
        outline.last_arrivals = len(outline.ended_s) - 1
    tool = artillery2 if outline.is_second else artillery1
    figures = list(tool.figures(tool.section(content), content))
    room = max(0, MOST_FIGURES - len(outline.figures))
    outline.figures += figures[:room]
    outline.figures_left_out += len(figures[room:])


def _row(entry: object, only_code: int) -> _Row | None:
    """One latency, or one entry of before 1.7; None when it is corrupt."""
    if isinstance(entry, tuple):
        if len(entry) != 4:
            return None
        ended_ms, latency_ns, code = number(entry[0]), _latency(entry[2]), number(entry[3])
        if ended_ms is None or latency_ns is None or code is None:
            return None
        sent_at = round(ended_ms * 1_000_000) - latency_ns
        return (sent_at, latency_ns, int(code)) if 0 <= sent_at < _MOST_NS and 0 <= code < _MOST_CODE else None
    latency_ns = _latency(entry)
    return None if latency_ns is None else (None, latency_ns, None if only_code < 0 else only_code)


def _latency(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_NS:
        return round(value)
    return None


def _plain(entries: list[Any]) -> np.ndarray | None:
    """Entries that are all latencies and nothing else, as nearly all are; None when one is not."""
    if set(map(type, entries)) == {int} and min(entries) >= 0 and max(entries) < _MOST_NS:
        return np.array(entries, np.int64)
    return None


def _is_whole_ms(entries: list[Any]) -> bool:
    plain = _plain(entries)
    if plain is None:
        plain = np.array([row[1] for entry in entries if (row := _row(entry, -1)) is not None], np.int64)
    return not np.any(plain % RESOLUTION_NS)


def _batch(entries: list[Any], only_code: int, first: int, phase: str | None) -> pa.RecordBatch:
    """The entries that are not corrupt."""
    plain = _plain(entries)
    if plain is None:
        rows = [row for entry in entries if (row := _row(entry, only_code)) is not None]
        sent_at, latency_ns, code = (pa.array([row[k] for row in rows], pa.int64()) for k in range(3))
    else:
        latency_ns = pa.array(plain)
        sent_at = pa.nulls(len(plain), pa.int64())
        code = pa.repeat(pa.scalar(None if only_code < 0 else only_code, pa.int64()), len(plain))
    count = len(latency_ns)
    columns = [
        pa.array(np.arange(first, first + count)),
        sent_at.cast(pa.timestamp("ns")),
        latency_ns,
        code.cast(pa.int32()),
        pa.repeat("", count),
        pa.nulls(count, pa.int64()),
        pa.nulls(count, pa.int64()),
        pa.repeat(pa.scalar(phase, pa.string()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARTILLERY_SCHEMA)
