"""The page of one trace dump: where the time of its traces went, per service and operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from loadstone.archive.trace_dumps import Dump
from loadstone.report import charts
from loadstone.report.numbers import rounded, significant
from loadstone.report.output import site_context, write_page
from loadstone.report.queries import Row, querying
from loadstone.report.site_layout import Part
from loadstone.tables.layout import text

SHOWN = 40  # operations per kind of trace; beyond that their number is given
PROBLEMS = 50
_DRAWN = 14  # rows of a chart


@dataclass(frozen=True)
class Kind:
    """Traces with the same operation at their root. `services` and `operations` are rows of ``page_traces.sql``."""

    service: str
    operation: str
    n_traces: int
    services: list[Row]
    operations: list[Row]
    calls: list[Row]


def build_trace_page(dump: Dump, tables: Path, reports: Path, options: Mapping[str, Any]) -> Path:
    """Write the page of one dump from the tables; returns its path. `options` is the configuration's ``report``."""
    source, part = text(dump.source), Part(reports, f"traces/{dump.slug}").begin()
    with querying(tables, None) as queries:
        rows = queries.rows("page_traces", dump=source)
        calls = queries.rows("page_trace_calls", dump=source)
        problems = queries.rows("page_trace_problems", dump=source, shown=PROBLEMS)
        overview = queries.rows("page_trace_overview", dump=source)[0]
    path = reports / "traces" / f"{dump.slug}.html"
    kinds = _kinds(rows, calls)
    context = {
        **site_context(options, tables),
        "title": f"Traces of {source}",
        "heading": f"Traces of {source}",
        "dump": dump,
        "kinds": kinds,
        "data": {  # there are no variants, rates or statistics to choose from
            "folder": dump.slug,
            "unit": "ms",
            "variants": [],
            "rates": [],
            "rate": None,
            "statistic": "",
            "statistics": {},
            "traces": [rows_drawn(kind) for kind in kinds],
        },
        "specs": charts.trace_specifications(),
        "overview": overview,
        "problems": problems,
        "milliseconds": milliseconds,
        "sum_of_calls": sum_of_calls,
        "shown": SHOWN,
    }
    write_page(path, "traces.html", context)
    part.finish([path])
    return path


def _kinds(rows: list[Row], calls: list[Row]) -> list[Kind]:
    root = itemgetter("root_service", "root_operation")
    kinds: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        kinds.setdefault(root(row), []).append(row)
    return [
        Kind(
            service,
            operation,
            found[0]["n_all"],
            [row for row in found if row["operation"] is None],
            [row for row in found if row["operation"] is not None],
            [row for row in calls if root(row) == (service, operation)],
        )
        for (service, operation), found in kinds.items()
    ]


def milliseconds(duration_ns: float | None) -> str:
    """A duration in ms, three significant digits."""
    return significant(None if duration_ns is None else duration_ns / 1e6)


def sum_of_calls(calls_ns: list[int]) -> str:
    """``70.0 + 15.0 + 50.0``, at most ten of them."""
    shown = " + ".join(map(milliseconds, calls_ns[:10]))
    return shown + (f" + {len(calls_ns) - 10} more" if len(calls_ns) > 10 else "")


def rows_drawn(kind: Kind) -> list[dict[str, Any]]:
    """The rows of one kind's chart: services, then operations, both without the root's; shares in percent."""
    rows = [row for row in kind.services if row["service"] != kind.service]
    rows += [row for row in kind.operations if (row["service"], row["operation"]) != (kind.service, kind.operation)]
    names = ("p5", "p25", "p50", "p75", "p95")
    return [
        {"name": _name(row), "traces": row["n_traces"]}
        | {name: rounded(100 * share, 6) for name, share in zip(names, row["shares"], strict=True)}
        for row in rows[:_DRAWN]
    ]


def _name(row: Row) -> str:
    service = row["service"] or "(no service)"
    return service if row["operation"] is None else f"{service}: {row['operation']}"
