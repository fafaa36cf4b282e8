"""Resource samples beside a run: CSV with the columns sampled_at, scope, name, cpu_millicores, memory_mib."""

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.readers.base import Problems
from loadstone.readers.stream import read_lines

COLUMNS = ["sampled_at", "scope", "name", "cpu_millicores", "memory_mib"]


def read(path: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    """One dictionary per sample with `COLUMNS`: a UTC datetime, two texts, two numbers or None."""
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
    found: dict[str, Any] = {name: value for name, value in zip(header, record, strict=True) if name in COLUMNS}
    try:
        instant = datetime.fromisoformat(found["sampled_at"])
        numbers = {name: float(found[name]) if found[name] else None for name in COLUMNS[3:]}
    except ValueError:
        return None
    if instant.tzinfo is None or any(number is not None and not math.isfinite(number) for number in numbers.values()):
        return None
    return found | numbers | {"sampled_at": instant.astimezone(UTC)}
