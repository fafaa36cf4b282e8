"""Rows of printed results: a table of text whose columns are statistics of latency, one run per row.

Comma-separated values or a Markdown table. A column is known by its name, whatever its case: ``min``, ``mean`` or
``avg``, ``median``, ``med`` or ``p50``, ``p90``, ``p(90)`` or ``90p``, ``max``, ``std``, ``count`` or ``requests``; a
unit may follow it (``p99 (ms)``, ``p99_ms``). Of two columns with the same name the last is used. All other columns
say which run a row is. Text before the header is not part of the table.

In the archive a run is its row after the header line (``<run>.summary.csv``), bytes unchanged; see `rows`.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, repeat
from operator import itemgetter

from loadstone.readers.base import (
    UNITS_NS,
    Block,
    Figure,
    Format,
    Problems,
    Report,
    duration_ns,
    latency_column,
    number,
)
from loadstone.readers.stream import decode, text_reader

_LONGEST_NAME = 60
_LEAST = 2  # statistics of latency that make a line the one of names
_COUNTS = ("count", "requests")
_UNIT = re.compile(r"(.+?)[ _(\[]+(s|ms|us|µs|μs|ns)[)\]]?")
_RULE = re.compile(r"[ |:-]+")


@dataclass(frozen=True)
class Column:
    """A column of statistics: its own name, the column of table ``summaries``, and the unit in its name, if any."""

    name: str
    statistic: str
    unit: str


def columns(names: Sequence[str]) -> dict[int, Column]:
    """Which of the columns with these names are statistics, by position; empty when it is no header line."""
    found: dict[str, tuple[int, Column]] = {}
    for position, name in enumerate(names):
        if column := _column(name):
            found[column.statistic] = position, column
    latencies = [statistic for statistic in found if statistic.endswith("_ns") and statistic != "std_ns"]
    return dict(sorted(found.values(), key=itemgetter(0))) if len(latencies) >= _LEAST else {}


def _column(name: str) -> Column | None:
    text, unit = name.strip().lower(), ""
    if len(text) > _LONGEST_NAME:  # no name of a statistic, and the expressions take the square of its length
        return None
    if (statistic := _statistic(text)) is None and (match := _UNIT.fullmatch(text)):
        statistic, unit = _statistic(match[1].strip()), match[2]
    return Column(name.strip(), statistic, unit) if statistic else None


def _statistic(text: str) -> str | None:
    return "requests" if text in _COUNTS else latency_column(text)


def rows(content: bytes) -> Iterator[Block]:
    """Every row of a table, in its order; places are those within `content`."""
    lines = re.findall(rb"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++", content)
    start, count, head, names, known = 0, 0, b"", [""], dict[int, Column]()
    for line, raw in enumerate(lines, 1):
        fields = _fields(decode(raw))
        if not known:
            known = columns(fields)
            head, names = (raw, fields) if known else (head, names)
        elif _is_rule(decode(raw)):
            head += raw
        elif any(fields):
            count += 1
            named = enumerate(zip(names, chain(fields, repeat("")), strict=False))
            labels = {name: text for place, (name, text) in named if place not in known}
            yield Block("summary.csv", (), count, raw, start, line, head, labels)
        start += len(raw)


def _fields(line: str) -> list[str]:
    """The fields of one line; none when it is not a line of a table."""
    line = line.strip()
    if line.startswith("|"):
        return [field.strip() for field in line.strip("|").split("|")]
    try:
        return [field.strip() for field in next(csv.reader([line], strict=True), [])]
    except csv.Error:
        return []


def _is_rule(line: str) -> bool:
    return "-" in line and "|" in line and _RULE.fullmatch(line.strip()) is not None


def parse(text: str, problems: Problems, unit: str | None = None) -> Report | None:
    """The one row of a text. `unit` is that of latencies which have none, neither after the number nor in their column.

    A figure that can't be parsed makes the row corrupt, and is absent. None when there is no row, more than one,
    or a latency without a unit.
    """
    content = text.encode()
    found = list(rows(content))
    if len(found) != 1:
        what = "it has more than one row, and each row is a run" if found else "it is not a row of a latency table"
        problems.damaged = problems.damaged or what
        return None
    (row,) = found
    known = columns(_fields(decode(row.head).split("\n", 1)[0]))
    fields = _fields(decode(row.text))
    read = Report()
    for position, column in known.items():
        printed = fields[position] if position < len(fields) else ""
        if not printed:
            continue
        is_count = column.statistic == "requests"
        value = number(printed) if is_count else _latency(printed, column.unit or unit)
        if value is None and not is_count and number(printed) is not None:
            problems.damaged = "its latencies have no unit (declare it in config/imports.yaml: unit: ms)"
            return None
        if value is None or (is_count and value.denominator != 1):
            problems.corrupt(row.line)
            continue
        read.figures.append(Figure("", "Latency", column.name, float(value), "" if is_count else "ns", printed))
        read.summary[column.statistic] = int(value) if is_count else float(value)
    return read


def _latency(text: str, unit: str | None) -> Fraction | None:
    plain = number(text)
    if plain is None:
        return duration_ns(text.replace(" ", ""))
    return None if unit is None else plain * UNITS_NS[unit]


FORMATS = {"summary.csv": Format(unit_report=text_reader(parse), is_printed=True, counts_requests=False)}
