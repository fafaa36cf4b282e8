"""CPU and memory around a run: samples, the log and the table of a script around ``kubectl top pods``, and notes.

``resources.csv``, Loadstone's own: columns sampled_at, scope, name, cpu_millicores, memory_mib. An optional
column asked_at has the time of the request for a round of samples, by the clock of this machine: a cluster answers with
values of a moment before, timed by its own clock.

``resource-usage.log`` has a header and a line per sample: local time, namespace, and the sums over its pods of CPU
(millicores) and memory (MiB). Some of its rows also have the largest pod's CPU after the sum, and memory likewise: six
fields, whatever the header says. A time has no zone there; it has to be declared. The table that the script
prints (``resource-summary.txt``) has minimum, maximum and mean of each. Its ``TOTAL`` is the sum of each column: of the
means before they were rounded.

``figures.csv``: CPU and memory before and after a run, or at any named moment, noted by hand. A header, then
a line per figure or pair of figures:

    label,scope,name,cpu_millicores,memory_mib,cpu_percent,sampled_at
    before,pod,cattle-system/rancher-0,,812,,2023-09-27T14:35:00-07:00
    during,node,playground,,,79,

`label` says when or under what, `scope` is that of table ``resources`` (node, namespace, pod, process) and `name` what
was measured. `cpu_percent` is of the whole node as its monitoring shows it, 0 to 100; it is never converted, as that
would take the number of its processors. `sampled_at` is ISO 8601 with offset. A column may be missing (but label, scope
and name), a field empty; a row has at least one figure.
"""

import io
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timezone
from fractions import Fraction
from pathlib import Path

from loadstone.archive import ASKED_AT, RESOURCE_COLUMNS
from loadstone.readers.base import Figure, Format, Problems, Report, Sample, instant, number
from loadstone.readers.stream import csv_records, read_text, text_lines, text_reader

_CPU, _MEMORY = RESOURCE_COLUMNS[3:]


def read(path: Path, problems: Problems) -> Iterator[Sample]:
    """Every sample of a file of Loadstone's own."""
    records = csv_records(text_lines(path, problems), problems)
    _, header = next(records, (0, None))
    if header is None:
        if not problems.damaged:
            problems.truncated = problems.truncated or "it is empty"
        return
    if not set(RESOURCE_COLUMNS) <= set(header):
        problems.damaged = f"its first line does not name the columns {', '.join(RESOURCE_COLUMNS)}"
        return
    for line, record in records:
        sample = _sample(dict(zip(header, record, strict=True))) if len(record) == len(header) else None
        if sample is None:
            problems.corrupt(line)
        else:
            yield sample


def _sample(given: dict[str, str]) -> Sample | None:
    try:
        sampled_at, asked_at = instant(given["sampled_at"]), given.get(ASKED_AT)
        cpu_millicores, memory_mib = _finite(given[_CPU]), _finite(given[_MEMORY])
        at = instant(asked_at) if asked_at else None
        return Sample(sampled_at, given["scope"], given["name"], cpu_millicores, memory_mib, at)
    except (ValueError, OverflowError):
        return None


def _finite(text: str) -> float | None:
    number = float(text) if text else None
    if number is not None and not math.isfinite(number):
        raise ValueError
    return number


# --- a script around kubectl top --------------------------------------------------------------------------------------

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:Z+-]*")

# How many fields a row has -> where CPU and memory are.
_PLACES = {4: (2, 3), 6: (2, 4)}
_LARGEST_POD = {6: ((3, "m"), (5, "Mi"))}

_HEADER = re.compile(r"[ \t]*Namespace[ \t,]+CPU_min\b.*")
_TABLE_UNITS = {"CPU": ("m", "millicores"), "Mem": ("Mi", "MiB")}
_COLUMNS = tuple(f"{metric}_{statistic}" for metric in _TABLE_UNITS for statistic in ("min", "max", "avg"))
_TOTAL = "TOTAL"


def read_log(path: Path, problems: Problems, zone: timezone | None = None) -> Iterator[Sample]:
    """Every sample of the script's log, of scope ``namespace``.

    `zone` is the offset of times that have none; without it a file of such times is damaged and gives no sample. A
    last line without a line feed may lack digits: it is ignored, and the file is truncated.
    """
    text = read_text(path, problems)
    if text is None:
        return
    lines = io.StringIO(text, newline="\n")
    for line, row in enumerate(lines, 1):
        if not row.endswith("\n"):
            problems.truncated = problems.truncated or "its last line is incomplete"
            return
        if line == 1 and not row.startswith("Timestamp, Namespace,"):
            problems.damaged = problems.damaged or "its first line does not begin with Timestamp, Namespace"
            return
        if line == 1 or not row.strip():
            continue
        sample = _logged(row.rstrip("\n").split(","), zone)
        if sample is None:
            problems.corrupt(line)
        elif sample.sampled_at.tzinfo is None:
            problems.damaged = "its times have no zone, and none was given for them"
            return
        else:
            yield sample


def _logged(fields: list[str], zone: timezone | None) -> Sample | None:
    """One sample, its time without a zone when none is given; None when the row is corrupt."""
    fields = [field.strip() for field in fields]
    if len(fields) not in _PLACES or not fields[1] or _TIME.fullmatch(fields[0]) is None:
        return None
    cpu, memory = (number(fields[place]) for place in _PLACES[len(fields)])
    largest = [number(fields[place], unit) for place, unit in _LARGEST_POD.get(len(fields), ())]
    if cpu is None or memory is None or None in largest:
        return None
    try:
        noted = datetime.fromisoformat(fields[0])
        noted = noted if noted.tzinfo else noted.replace(tzinfo=zone)
        sampled_at = noted.astimezone(UTC) if noted.tzinfo else noted
    except (ValueError, OverflowError):
        return None
    return Sample(sampled_at, "namespace", fields[1], float(cpu), float(memory))


def parse_table(text: str, problems: Problems) -> Report | None:
    """The table in a text; other text may precede it. A figure per cell, with its namespace (or ``TOTAL``) as section.

    A table in which TOTAL is not the sum of a column to the last digit printed, or a minimum, mean and maximum are not
    in ascending order, is damaged; one without a TOTAL is truncated.
    """
    lines = text.split("\n")
    first = next((line for line, content in enumerate(lines) if _HEADER.fullmatch(content)), None)
    separator = "," if first is not None and "," in lines[first] else None
    columns = [] if first is None else _table_fields(lines[first], separator)[1:]
    if first is None or not set(columns) <= set(_COLUMNS) or len(set(columns)) < len(columns):
        problems.damaged = problems.damaged or "it is not a table of namespaces (Namespace, CPU_min, ...)"
        return None
    rows: dict[str, list[Figure]] = {}
    for line, content in enumerate(lines[first + 1 :], first + 2):
        if not content.strip():
            continue
        name, *cells = _table_fields(content, separator)
        row = _table_row(name, columns, cells)
        if row is None or name in rows:
            problems.corrupt(line)
        else:
            rows[name] = row
        if name == _TOTAL:
            break
    else:
        problems.truncated = problems.truncated or f"it has no line {_TOTAL}"
    if not problems.corrupt_records:
        _check_table(columns, rows, problems)
    return Report(figures=[figure for row in rows.values() for figure in row])


def _table_fields(line: str, separator: str | None) -> list[str]:
    return [field.strip() for field in line.split(separator)]


def _table_row(name: str, columns: list[str], cells: list[str]) -> list[Figure] | None:
    if not name or len(cells) != len(columns):
        return None
    figures = []
    for column, cell in zip(columns, cells, strict=True):
        metric, _, statistic = column.partition("_")
        suffix, unit = _TABLE_UNITS[metric]
        value = number(cell, suffix)
        if value is None:
            return None
        figures.append(Figure(name, metric, statistic, float(value), unit, cell))
    return figures


def _check_table(columns: list[str], rows: dict[str, list[Figure]], problems: Problems) -> None:
    parts = [row for name, row in rows.items() if name != _TOTAL]
    for place, total in enumerate(rows.get(_TOTAL, [])):
        exact = sum(_exact(row[place]) for row in parts)
        if abs(exact - _exact(total)) > _rounding(total.text) * (len(parts) + 1):
            problems.damaged = f"its TOTAL is not the sum of its column {columns[place]}"
    for row in parts:
        values = dict(zip(columns, (figure.value for figure in row), strict=True))
        for metric in _TABLE_UNITS:
            in_turn = [values.get(f"{metric}_{statistic}") for statistic in ("min", "avg", "max")]
            in_order = [value for value in in_turn if value is not None]
            if in_order != sorted(in_order):
                problems.damaged = f"its {metric}_min, {metric}_avg and {metric}_max contradict each other"


def _exact(figure: Figure) -> Fraction:
    return Fraction(figure.text.rstrip("Mim"))


def _rounding(text: str) -> Fraction:
    """How far a figure may be from what was rounded to it; nothing for one that is printed without decimals."""
    decimals = text.rstrip("Mim").partition(".")[2]
    return Fraction(1, 2 * 10 ** len(decimals)) if decimals else Fraction(0)


# --- notes ------------------------------------------------------------------------------------------------------------

_NAMES = ("label", "scope", "name")
_NOTE_UNITS = {"cpu_millicores": "millicores", "memory_mib": "MiB", "cpu_percent": "share"}
_SAMPLED_AT = "sampled_at"
_SCOPES = ("node", "namespace", "pod", "process")


def parse_notes(text: str, problems: Problems) -> Report | None:
    """Every figure, with the label as section and ``<scope> <name>`` as statistic; those with a time are samples too.

    A line that can't be parsed is corrupt; None when the header does not name the columns.
    """
    records = csv_records(io.StringIO(text, newline="\n"), problems)
    _, names = next(records, (0, None))
    if names is None:
        problems.damaged = problems.damaged or "it has no first line that names its columns"
        return None
    header = [name.strip() for name in names]
    if not set(_NAMES) <= set(header) <= {*_NAMES, *_NOTE_UNITS, _SAMPLED_AT} or len(set(header)) < len(header):
        problems.damaged = f"its first line does not name the columns {', '.join(_NAMES)} and figures"
        return None
    found = Report()
    for line, record in records:
        if len(record) != len(header) or not _add(dict(zip(header, map(str.strip, record), strict=True)), found):
            problems.corrupt(line)
    return found


def _add(given: dict[str, str], found: Report) -> bool:
    """Add a record to the report; returns whether it was valid."""
    if given["scope"] not in _SCOPES or not given["name"]:
        return False
    figures = []
    what = f"{given['scope']} {given['name']}"
    for metric, unit in _NOTE_UNITS.items():
        text = given.get(metric, "")
        value = number(text)
        if value is not None and metric == "cpu_percent":
            value = value / 100 if value <= 100 else None
        if value is not None:
            figures.append(Figure(given["label"], metric, what, float(value), unit, text))
        elif text:
            return False
    try:
        sampled_at = instant(given[_SAMPLED_AT]) if given.get(_SAMPLED_AT) else None
    except (ValueError, OverflowError):
        return False
    found.figures += figures
    by_metric = {figure.metric: figure.value for figure in figures}
    cpu_millicores, memory_mib = by_metric.get(_CPU), by_metric.get(_MEMORY)
    if sampled_at is not None and (cpu_millicores, memory_mib) != (None, None):
        sample = Sample(sampled_at, given["scope"], given["name"], cpu_millicores, memory_mib, label=given["label"])
        found.samples.append(sample)
    return bool(figures)


FORMATS = {
    "resources.csv": Format(samples=lambda path, problems, _: read(path, problems), begins=b"sampled_at,scope,name,"),
    "resource-usage.log": Format(samples=read_log, begins=rb"Timestamp, ?Namespace,"),
    "resource-summary.txt": Format(report=text_reader(parse_table), contains=rb"^[ \t]*Namespace[ \t,]+CPU_min\b"),
    "figures.csv": Format(report=text_reader(parse_notes), begins=b"label,scope,name,"),
}
