"""k6's raw output as CSV (``k6 run --out csv=FILE``): a line per point, with a header that names the tags.

Times are in whole seconds unless K6_CSV_TIME_FORMAT asked for more. A request's start is then known to the second only:
`sent_at` may be up to `report`'s ``clock_resolution_ns`` earlier than it was.
"""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from loadstone.readers.base import Problems, Report
from loadstone.readers.k6_points import DURATION, REQUESTS, Rows, Tags, compare, instant_ns
from loadstone.readers.stream import LONGEST_LINE_BYTES, TextLines, read_lines

_BEGIN = ["metric_name", "timestamp", "metric_value"]
_TAGS = ("status", "error", "error_code", "scenario", "group")
_VALUE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_SOUGHT = 10_000  # lines in which a time is looked for

# Unix times tell by their digits what they count; these ranges are of 1973 to 2262.
_UNITS_NS = {9: 10**9, 10: 10**9, 12: 10**6, 13: 10**6, 15: 1000, 16: 1000, 18: 1, 19: 1}


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `loadstone.readers.k6_points.K6_SCHEMA` from ``.k6.csv``, plain or ``.zst``, in the file's order."""
    rows = Rows()
    counted = 0
    for line, record, columns in _records(path, problems):
        if record[0] == REQUESTS:
            counted += 1
        elif record[0] == DURATION:
            if not _add(record, columns, rows):
                problems.corrupt(line)
            if rows.full:
                yield rows.batch()
    if len(rows):
        yield rows.batch()
    compare(counted, rows.seq, problems)


def report(path: Path, problems: Problems) -> Report | None:
    """Nothing but `said`: ``clock_resolution_ns``, how finely the file tells times."""
    for _, record, _ in islice(_records(path, problems), _SOUGHT):
        if (known := _time(record[1])) is not None:
            return Report(said={"clock_resolution_ns": str(known[1])})
    return None


def _records(path: Path, problems: Problems) -> Iterator[tuple[int, list[str], dict[str, int]]]:
    """Every record behind the header with its line and where each tag stands."""
    csv.field_size_limit(LONGEST_LINE_BYTES)
    lines = TextLines(read_lines(path, problems), "backslashreplace")
    records = csv.reader(lines, strict=True)
    columns: dict[str, int] = {}
    width = 0
    while True:
        try:
            record = next(records, None)
        except csv.Error:
            if not width:
                break
            problems.corrupt(lines.read)
            continue
        if record is None:
            break
        if not record:
            continue
        if not width:
            record[0] = record[0].removeprefix("\ufeff")
            if record[:3] != _BEGIN:
                break
            width, columns = len(record), {name: index for index, name in enumerate(record) if name in _TAGS}
        elif len(record) == width:
            yield lines.read, record, columns
        else:
            problems.corrupt(lines.read)
    if not width and not problems.texts():
        problems.damaged = "it is no CSV output of k6"


def _add(record: list[str], columns: dict[str, int], rows: Rows) -> bool:
    known = _time(record[1])
    if known is None or _VALUE.fullmatch(record[2]) is None:
        return False
    tags = Tags(*(record[columns[name]] if name in columns else "" for name in _TAGS))
    return rows.add(known[0], float(record[2]), tags)


def _time(text: str) -> tuple[int, int] | None:
    """A time in nanoseconds since 1970, and how many of them its last digit stands for."""
    if text.isascii() and text.isdecimal():
        unit_ns = _UNITS_NS.get(len(text))
        return None if unit_ns is None else (int(text) * unit_ns, unit_ns)
    ended_ns = instant_ns(text)
    # Go drops zeros at the end, so that decimals tell nothing but that there are some.
    return None if ended_ns is None else (ended_ns, 1 if "." in text else 10**9)
