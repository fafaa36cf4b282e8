"""CPU and memory before and after a run, or at any named moment, as people note them down: ``<run>.figures.csv``.

A header, then a line per figure or pair of figures:

    label,scope,name,cpu_millicores,memory_mib,cpu_percent,sampled_at
    before,pod,cattle-system/rancher-0,,812,,2023-09-27T14:35:00-07:00
    during,node,playground,,,79,

`label` says when or under what, `scope` is that of table ``resources`` (node, namespace, pod, process) and `name` what
was measured. `cpu_percent` is of the whole node as its monitoring shows it, 0 to 100; it is never converted, as that
would take the number of its processors. `sampled_at` is ISO 8601 with offset. A column may be missing (but label, scope
and name), a field empty; a row has at least one figure.
"""

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.archive import ASKED_AT, RESOURCE_COLUMNS
from loadstone.readers.base import Figure, Problems, Report
from loadstone.readers.printed import number, read_text

_NAMES = ("label", "scope", "name")
_UNITS = {"cpu_millicores": "millicores", "memory_mib": "MiB", "cpu_percent": "share"}
_SAMPLED_AT = "sampled_at"
_SCOPES = ("node", "namespace", "pod", "process")


def report(path: Path, problems: Problems) -> Report | None:
    """Every figure, with the label as section and ``<scope> <name>`` as statistic; see `parse`."""
    text = read_text(path, problems)
    return None if text is None else parse(text, problems)


def parse(text: str, problems: Problems) -> Report | None:
    """The figures in a text. Those with a time are samples too, which have the key ``label`` besides the usual ones.

    A line that can't be understood is corrupt; None when the header does not name the columns.
    """
    records = csv.reader(text.split("\n"), strict=True)
    found = Report()
    header: list[str] | None = None
    while True:
        try:
            record = next(records, None)
        except csv.Error:
            problems.corrupt(records.line_num)
            continue
        if record is None:
            break
        if not record:
            continue
        if header is None:
            header = [field.strip() for field in record]
            if not set(_NAMES) <= set(header) <= {*_NAMES, *_UNITS, _SAMPLED_AT} or len(set(header)) < len(header):
                problems.damaged = f"its first line does not name the columns {', '.join(_NAMES)} and figures"
                return None
        elif not _add(header, record, found):
            problems.corrupt(records.line_num)
    if header is None:
        problems.damaged = problems.damaged or "it has no first line that names its columns"
        return None
    return found


def _add(header: list[str], record: list[str], found: Report) -> bool:
    """Whether the record was understood."""
    if len(record) != len(header):
        return False
    given = dict(zip(header, map(str.strip, record), strict=True))
    if given["scope"] not in _SCOPES or not given["name"]:
        return False
    figures = []
    what = f"{given['scope']} {given['name']}"
    for metric, unit in _UNITS.items():
        text = given.get(metric, "")
        value = number(text)
        if value is not None and metric == "cpu_percent":
            value = value / 100 if value <= 100 else None
        if value is not None:
            figures.append(Figure(given["label"], metric, what, float(value), unit, text))
        elif text:
            return False
    try:
        sampled_at = _instant(given.get(_SAMPLED_AT, ""))
    except (ValueError, OverflowError):
        return False
    found.figures += figures
    by_metric = {figure.metric: figure.value for figure in figures}
    values = (sampled_at, given["scope"], given["name"], *(by_metric.get(column) for column in RESOURCE_COLUMNS[3:]))
    if sampled_at is not None and values[3:] != (None, None):
        sample: dict[str, Any] = dict(zip(RESOURCE_COLUMNS, values, strict=True))
        found.samples.append(sample | {ASKED_AT: None, "label": given["label"]})
    return bool(figures)


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError
    return instant.astimezone(UTC)
