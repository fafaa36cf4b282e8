"""Resource samples beside a run: CSV with the columns sampled_at, scope, name, cpu_millicores, memory_mib.

A further column asked_at may say when a round of samples was asked for by the clock of the one who asked: what is asked
of a cluster is of a moment before, by the cluster's clock.
"""

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.archive import ASKED_AT
from loadstone.archive import RESOURCE_COLUMNS as COLUMNS
from loadstone.readers.base import Problems
from loadstone.readers.stream import read_lines


def read(path: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    """One dictionary per sample: `COLUMNS` (a UTC datetime, two texts, two numbers or None) and asked_at, or None."""
    lines = (
        line.decode("utf-8", "replace")
        for buffer, end in read_lines(path, problems)
        for line in bytes(buffer[:end]).splitlines(keepends=True)
    )
    records = csv.reader(lines)
    header: list[str] | None = None
    while True:
        try:
            record = next(records, None)
        except csv.Error:
            problems.corrupt(records.line_num)
            continue
        if record is None:
            if header is None and not problems.damaged:
                problems.truncated = problems.truncated or "it is empty"
            return
        if header is None:
            header = record
            if not set(COLUMNS) <= set(header):
                problems.damaged = f"its first line does not name the columns {', '.join(COLUMNS)}"
                return
            continue
        if record and (row := _row(header, record)) is not None:
            yield row
        elif record:
            problems.corrupt(records.line_num)


def _row(header: list[str], record: list[str]) -> dict[str, Any] | None:
    if len(record) != len(header):
        return None
    given = dict(zip(header, record, strict=True))
    try:
        found = {"sampled_at": _instant(given["sampled_at"]), "scope": given["scope"], "name": given["name"]}
        found |= {name: _number(given[name]) for name in COLUMNS[3:]}
        return found | {ASKED_AT: _instant(given[ASKED_AT]) if given.get(ASKED_AT) else None}
    except (ValueError, OverflowError):
        return None


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError
    return instant.astimezone(UTC)


def _number(text: str) -> float | None:
    number = float(text) if text else None
    if number is not None and not math.isfinite(number):
        raise ValueError
    return number
