"""HdrHistogram's percentile tables: Value, Percentile, TotalCount, 1/(1-Percentile), with spaces or commas between.

Two kinds of programs print them, and their counts mean different things:

- HdrHistogram itself (``outputPercentileDistribution``; also wrk2): the header has no unit, a footer gives mean,
  deviation and maximum, and TotalCount was counted: so many values are at most Value.
- ``vegeta report -type hdrplot`` and hey-hdr: the header says ``Value(ms)``, and TotalCount is Percentile times the
  number of requests, rounded. The true count at Value is between this one and that of the next greater value.

A line says of a run that the share Percentile of its requests took at most Value. Bins are the steps between lines of
different values, so that a bin of the second kind may be wrong by less than a step on either side.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from loadstone.readers.base import PERCENTILES, UNITS_NS, Bin, Figure, Format, Problems, Report, number
from loadstone.readers.stream import text_reader

DEFAULT_UNIT = "ms"

_VALUE = re.compile(r"Value(?:\((.{1,2})\))?")
_COLUMNS = ["Percentile", "TotalCount", "1/(1-Percentile)"]
_FOOTER = re.compile(r"#\[([A-Z][A-Za-z ]*+)=([^,\]]*+),([A-Za-z ]*+)=([^,\]]*+)\]")
_SHARES = {column: Fraction(percent) / 100 for percent, column in PERCENTILES.items()}


@dataclass(frozen=True)
class Line:
    """One line: the share `percentile` (0 to 1) of requests took at most `value_ns`; `count` is its TotalCount."""

    percentile: Fraction
    value_ns: Fraction
    count: int
    texts: tuple[str, ...]


def parse(text: str, problems: Problems, unit: str | None = None) -> Report | None:
    """The table in a text; other text may precede it. `unit` is that of values when the header has none; default: ms.

    The summary has the percentiles that the table determines (see `bounds`), and mean and deviation if there is a
    footer. A line that can't be parsed, or is below the one before, is corrupt; a table that does not reach percentile
    1 is truncated.
    """
    lines, unit = text.split("\n"), unit or DEFAULT_UNIT
    headers = ((number, header) for number, header in enumerate(map(_header, lines), 1) if header)
    first, header = next(headers, (0, None))
    named_unit, separator = header or ("", None)
    unit_ns = UNITS_NS.get(named_unit or unit) if header else None
    if unit_ns is None:
        problems.damaged = problems.damaged or "it is not an HdrHistogram percentile table (Value, Percentile, ...)"
        return None
    table, footer = _table(lines, first, separator, unit_ns, problems)
    if not table:
        problems.damaged = problems.damaged or "it has no line with a percentile"
        return None
    found = Report(
        summary=_summary(table, counted=not named_unit),
        figures=[figure for line in table for figure in _figures(line)],
        histogram=_histogram(table),
    )
    _add_footer(footer, unit_ns, found, problems)
    if table[-1].percentile != 1:
        problems.truncated = problems.truncated or "it ends before percentile 1"
    return found


def _header(line: str) -> tuple[str, str | None] | None:
    """The unit in a header line, empty when it has none, and what separates its fields; None when it is no header."""
    separator = "," if "," in line else None
    names = [name.strip().strip('"') for name in line.split(separator)]
    value = _VALUE.fullmatch(names[0]) if names[1:] == _COLUMNS else None
    return None if value is None else (value[1] or "", separator)


def _table(
    lines: list[str], start: int, separator: str | None, unit_ns: int, problems: Problems
) -> tuple[list[Line], dict[str, str]]:
    """The lines after the header, and the footer's figures by name. Text after them is ignored."""
    table: list[Line] = []
    footer: dict[str, str] = {}
    for line, content in enumerate(lines[start:], start + 1):
        if content.startswith("#["):
            pairs = _FOOTER.fullmatch(content.rstrip())
            if pairs is None:
                problems.corrupt(line)
            else:
                footer |= {pairs[1].strip(): pairs[2].strip(), pairs[3].strip(): pairs[4].strip()}
            continue
        if footer or not content.strip():
            continue
        row = _line([field.strip() for field in content.split(separator)], unit_ns)
        is_cut = line == len(lines) and (row is None or len(row.texts) == 3)
        if row is None and not is_cut and table and table[-1].percentile == 1:
            break
        if row is None or is_cut or (table and not _ascends(table[-1], row)):
            problems.corrupt(line)
        else:
            table.append(row)
    return table, footer


def _line(fields: list[str], unit_ns: int) -> Line | None:
    if len(fields) not in (3, 4):
        return None
    value, percentile, count = map(number, fields[:3])
    if value is None or percentile is None or count is None or percentile > 1 or count.denominator != 1:
        return None
    is_last = percentile == 1 and fields[3:] in ([], ["inf"], ["Infinity"], ["+Inf"])
    is_whole = is_last or number("".join(fields[3:])) is not None
    return Line(percentile, value * unit_ns, int(count), tuple(fields)) if is_whole else None


def _ascends(before: Line, line: Line) -> bool:
    return before.percentile <= line.percentile and before.value_ns <= line.value_ns and before.count <= line.count


def _figures(line: Line) -> list[Figure]:
    value, percentile, count = line.texts[:3]
    return [
        Figure("", "Value", percentile, float(line.value_ns), "ns", value),
        Figure("", "TotalCount", percentile, float(line.count), "", count),
    ]


def _histogram(table: list[Line]) -> list[Bin]:
    """The steps between values; the first bin begins at 0, or at the table's least value when that has no count."""
    steps = [(line.value_ns, line.count) for line, above in pairwise(table) if above.value_ns > line.value_ns]
    steps.append((table[-1].value_ns, table[-1].count))
    least = steps.pop(0) if steps[0][1] == 0 and len(steps) > 1 else (Fraction(0), 0)
    return [
        Bin(float(lower), float(upper), count - before)
        for (lower, before), (upper, count) in pairwise([least, *steps])
        if count > before
    ]


def bounds(table: list[Line], share: Fraction, *, counted: bool) -> tuple[Fraction, Fraction] | None:
    """Between which values (in ns, each possible) the percentile at a share lies; None beyond the table's ends.

    Both are the same where the table determines it: at a line's own percentile; between two lines of the same value;
    and, when counts were counted, up to the share of requests that are at most the line's value.
    """
    above = next((line for line in table if line.percentile >= share), None)
    below = [line for line in table if line.percentile <= share]
    if above is None or not below:
        return None
    if counted and share * table[-1].count <= below[-1].count:
        above = below[-1]
    least, most = sorted((below[-1].value_ns, above.value_ns))
    return least, most


def _summary(table: list[Line], *, counted: bool) -> dict[str, Any]:
    """Columns of the summary. Only a table that reaches percentile 1 says how many requests there were."""
    summary: dict[str, Any] = {}
    if reaches_end := table[-1].percentile == 1:
        summary |= {"requests": table[-1].count, "max_ns": float(table[-1].value_ns)}
    for column, share in _SHARES.items():
        between = bounds(table, share, counted=counted and reaches_end)
        if between is not None and between[0] == between[1]:
            summary[column] = float(between[0])
    if counted and table[0].percentile == 0 and table[0].count:
        summary["min_ns"] = float(table[0].value_ns)
    return summary


def _add_footer(footer: dict[str, str], unit_ns: int, found: Report, problems: Problems) -> None:
    for name, text in footer.items():
        value = number(text)
        if value is None:
            continue
        in_ns = name in ("Mean", "StdDeviation", "Max")
        figure = Figure("", name, "", float(value * unit_ns if in_ns else value), "ns" if in_ns else "", text)
        found.figures.append(figure)
        if column := {"Mean": "mean_ns", "StdDeviation": "std_ns"}.get(name):
            found.summary[column] = figure.value
        if name == "Total count" and found.summary.get("requests", value) != value:
            problems.damaged = problems.damaged or "its Total count is not that of its last line"


FORMATS = {
    "hdr.csv": Format(
        unit_report=text_reader(parse),
        begins=rb'(?:#[^\n]*\n)*\s*"?Value[^\n]{0,20}Percentile',
        rounding=0.01,  # two significant digits or more
        is_printed=True,
    ),
}
