"""CPU and memory of namespaces, sampled by a script around ``kubectl top pods``, and the table it prints of them.

``resource-usage.log`` has a header and a line per sample: local time, namespace, and the sums over its pods of CPU
(millicores) and memory (MiB). Some of its rows also have the largest pod's CPU behind the sum, and memory likewise: six
fields, whatever the header says. A time has no zone there, so it has to come from outside.

The printed table has least, most and mean of each. Its ``TOTAL`` is the sum of each column: of the means before they
were rounded.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

from loadstone.archive import ASKED_AT, RESOURCE_COLUMNS
from loadstone.readers.base import Figure, Problems, Report
from loadstone.readers.printed import number, read_text

_CPU, _MEMORY = RESOURCE_COLUMNS[3:]
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:Z+-]*")

# How many fields a row has -> where CPU and memory are.
_PLACES = {4: (2, 3), 6: (2, 4)}
_LARGEST_POD = {6: ((3, "m"), (5, "Mi"))}

_HEADER = re.compile(r"[ \t]*Namespace[ \t,]+CPU_min\b.*")
_UNITS = {"CPU": ("m", "millicores"), "Mem": ("Mi", "MiB")}
_COLUMNS = tuple(f"{metric}_{statistic}" for metric in _UNITS for statistic in ("min", "max", "avg"))
_TOTAL = "TOTAL"


def read(path: Path, problems: Problems, zone: timezone | None = None) -> Iterator[dict[str, Any]]:
    """One dictionary per sample, as `loadstone.readers.resources.read` yields them, of scope ``namespace``.

    `zone` is the offset of times that have none; without it a file of such times is damaged and gives no sample. A
    last line without its end may lack digits: it is left out, and the file is truncated.
    """
    text = read_text(path, problems)
    if text is None:
        return
    lines = io.StringIO(text, newline="\n")
    for line, row in enumerate(lines, 1):
        if not row.endswith("\n"):
            problems.truncated = problems.truncated or "its last line has no end"
            return
        if line == 1 and not row.startswith("Timestamp, Namespace,"):
            problems.damaged = problems.damaged or "its first line does not begin with Timestamp, Namespace"
            return
        if line == 1 or not row.strip():
            continue
        sample = _sample(row.rstrip("\n").split(","), zone)
        if sample is None:
            problems.corrupt(line)
        elif sample["sampled_at"] is None:
            problems.damaged = "its times have no zone, and none was given for them"
            return
        else:
            yield sample


def _sample(fields: list[str], zone: timezone | None) -> dict[str, Any] | None:
    """One sample, without its time when that has no zone and none is given; None when the row is corrupt."""
    fields = [field.strip() for field in fields]
    if len(fields) not in _PLACES or not fields[1] or _TIME.fullmatch(fields[0]) is None:
        return None
    cpu, memory = (number(fields[place]) for place in _PLACES[len(fields)])
    largest = [number(fields[place], unit) for place, unit in _LARGEST_POD.get(len(fields), ())]
    if cpu is None or memory is None or None in largest:
        return None
    try:
        told = datetime.fromisoformat(fields[0])
        told = told if told.tzinfo else told.replace(tzinfo=zone)
        sampled_at = told.astimezone(UTC) if told.tzinfo else None
    except (ValueError, OverflowError):
        return None
    values = (sampled_at, "namespace", fields[1], float(cpu), float(memory))
    return dict(zip(RESOURCE_COLUMNS, values, strict=True)) | {ASKED_AT: None}


def printed(samples: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The table of these samples as the script prints it: namespace or ``TOTAL`` -> the texts of its six columns.

    The script is awk's: sums in double precision, rounded as C does. Namespaces are in the order of their first sample
    (the script's own order is by chance). Empty without samples.
    """
    kept: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        kept.setdefault(sample["name"], []).append((sample[_CPU], sample[_MEMORY]))
    rows = {}
    for name, pairs in kept.items():
        cpus, memories = zip(*pairs, strict=True)
        rows[name] = [f for values in (cpus, memories) for f in (min(values), max(values), sum(values) / len(values))]
    if rows:
        rows[_TOTAL] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return {name: tuple(map(_print, _COLUMNS, row)) for name, row in rows.items()}


def _print(column: str, value: float) -> str:
    metric, statistic = column.split("_")
    return f"{value:.2f}{_UNITS[metric][0]}" if statistic == "avg" else f"{int(value)}{_UNITS[metric][0]}"


def report(path: Path, problems: Problems) -> Report | None:
    """The printed table, aligned or with commas, in ``.txt`` or ``.txt.zst``; see `parse`."""
    text = read_text(path, problems)
    return None if text is None else parse(text, problems)


def parse(text: str, problems: Problems) -> Report | None:
    """The table in a text, whatever stands before it: a figure per cell, with its namespace (or ``TOTAL``) as section.

    A table in which TOTAL is not the sum of a column to the last digit printed, or a least, mean and most are not in
    this order, is damaged; one without a TOTAL is truncated.
    """
    lines = text.split("\n")
    first = next((line for line, content in enumerate(lines) if _HEADER.fullmatch(content)), None)
    commas = first is not None and "," in lines[first]
    columns = [] if first is None else _fields(lines[first], commas)[1:]
    if first is None or not set(columns) <= set(_COLUMNS) or len(set(columns)) < len(columns):
        problems.damaged = problems.damaged or "it is no table of namespaces (Namespace, CPU_min, ...)"
        return None
    rows: dict[str, list[Figure]] = {}
    for line, content in enumerate(lines[first + 1 :], first + 2):
        if not content.strip():
            continue
        name, *cells = _fields(content, commas)
        row = _row(name, columns, cells)
        if row is None or name in rows:
            problems.corrupt(line)
        else:
            rows[name] = row
        if name == _TOTAL:
            break
    else:
        problems.truncated = problems.truncated or f"it has no line {_TOTAL}"
    if not problems.corrupt_records:
        _check(columns, rows, problems)
    return Report(figures=[figure for row in rows.values() for figure in row])


def _fields(line: str, commas: bool) -> list[str]:
    return [field.strip() for field in line.split(",")] if commas else line.split()


def _row(name: str, columns: list[str], cells: list[str]) -> list[Figure] | None:
    if not name or len(cells) != len(columns):
        return None
    figures = []
    for column, cell in zip(columns, cells, strict=True):
        metric, _, statistic = column.partition("_")
        suffix, unit = _UNITS[metric]
        value = number(cell, suffix)
        if value is None:
            return None
        figures.append(Figure(name, metric, statistic, float(value), unit, cell))
    return figures


def _check(columns: list[str], rows: dict[str, list[Figure]], problems: Problems) -> None:
    parts = [row for name, row in rows.items() if name != _TOTAL]
    for place, total in enumerate(rows.get(_TOTAL, [])):
        exact = sum(_exact(row[place]) for row in parts)
        if abs(exact - _exact(total)) > _rounding(total.text) * (len(parts) + 1):
            problems.damaged = f"its TOTAL is not the sum of its column {columns[place]}"
    for row in parts:
        values = dict(zip(columns, (figure.value for figure in row), strict=True))
        for metric in _UNITS:
            told = [values.get(f"{metric}_{statistic}") for statistic in ("min", "avg", "max")]
            in_order = [value for value in told if value is not None]
            if in_order != sorted(in_order):
                problems.damaged = f"its {metric}_min, {metric}_avg and {metric}_max contradict each other"


def _exact(figure: Figure) -> Fraction:
    return Fraction(figure.text.rstrip("Mim"))


def _rounding(text: str) -> Fraction:
    """How far a figure may be from what was rounded to it; nothing for one that is printed without decimals."""
    decimals = text.rstrip("Mim").partition(".")[2]
    return Fraction(1, 2 * 10 ** len(decimals)) if decimals else Fraction(0)
