"""Section on single runs as reported by the tool, with the source of each figure.

These figures are never averaged over runs. Figures computed from the requests of the same run have rows of their own.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone import stats
from loadstone.percentiles import LATENCIES, RUN_PERCENTILES
from loadstone.readers import load_generators
from loadstone.report.numbers import COARSE_NS, Unit, duration, in_steps, joined, resolution_text
from loadstone.report.queries import Queries, Row, run_key
from loadstone.text import counted, rate_text

_BOUNDS = 400  # points shown of a histogram
_SHOWN = 300  # lines of the table; of more, the number is given

FIGURES = {
    "min_ns": "Min",
    "mean_ns": "Mean",
    "p50_ns": "Median",
    "p75_ns": "p75",
    "p90_ns": "p90",
    "p95_ns": "p95",
    "p99_ns": "p99",
    "p999_ns": "p99.9",
    "max_ns": "Max",
}
_PERCENTILES = {f"{name}_ns": share for name, share in RUN_PERCENTILES.items()}
# Figures of the chart across load, by the names that the page's other charts use.
CHARTED = {"summaries": "mean_ns"} | {name: f"{name}_ns" for name in LATENCIES}

_STAMPS = {
    "start": "the start of a request",
    "end": "its end",
    "offset": "the time since the run's start",
    "none": "no time of single requests",
}


@dataclass(frozen=True)
class Reported:
    """`rows` are those of ``page_reported.sql`` to show, `raw` those of ``page_reported_raw.sql`` by run.

    `n_runs` counts all runs of the page by load and variant, whether shown here or not.
    """

    rows: list[Row]
    raw: Mapping[tuple[Any, ...], list[Row]]
    bounds: list[Row]
    n_runs: Mapping[tuple[float, str], int]


def gather(
    queries: Queries, takes: Callable[[Row], bool] = lambda _: True, named: Callable[[Row], Row] = lambda row: row
) -> Reported:
    """Query everything; `takes` says whether a run is of the page, `named` gives a row the name of its series."""
    runs = [named(row) for row in queries.rows("page_reported") if takes(row)]
    rows = [row for row in runs if row["shown"]]
    raw: dict[tuple[Any, ...], list[Row]] = {}
    if any(row["evidence"] == "raw" for row in rows):
        for row in queries.rows_of_requests("page_reported_raw"):
            raw.setdefault(run_key(row), []).append(row)
    histograms = any(row["evidence"] == "histogram" for row in rows)
    bounds = queries.rows("page_histograms", shown=_BOUNDS) if histograms else []
    wanted = {run_key(row) for row in rows}
    n_runs = Counter((row["rate"], row["variant"]) for row in runs)
    return Reported(rows, raw, [row for row in bounds if run_key(row) in wanted], n_runs)


def context(reported: Reported, labels: Mapping[str, str], unit: Unit, *, campaigns: bool = False) -> dict[str, Any]:
    """The variables of ``reported.html``; `campaigns`: rows are of several campaigns, which they name."""
    order = list(labels)
    rows = sorted(
        (row for row in reported.rows if row["variant"] in labels),
        key=lambda row: (row["rate"], order.index(row["variant"]), row["host"], row["timestamp"], row["run"]),
    )
    lines = [line for row in rows for line in _lines(row, reported.raw.get(run_key(row), []), unit)]
    more, lines = len(lines) - _SHOWN, lines[:_SHOWN]
    shown = [name for name in FIGURES if any(line["figures"][name] != "–" for line in lines)]
    many = {key: reported.n_runs[key] for key in dict.fromkeys((row["rate"], row["variant"]) for row in rows)}
    return {
        "reported": lines,
        "reported_evidence": len({line["evidence_text"] for line in lines}) > 1,
        "reported_more": max(more, 0),
        "reported_figures": {name: FIGURES[name] for name in shown},
        "reported_labels": sorted({name for row in rows for name in dict(row["labels"] or {})}),
        "reported_by_tool": any(not line["computed"] for line in lines),
        "reported_notes": [*_notes(rows, many), *_unsupported(lines)],
        "reported_campaigns": campaigns,
        "reported_described": any(row["description"] for row in rows),
        "histograms": bool(reported.bounds),
    }


def _lines(row: Row, raw: Sequence[Row], unit: Unit) -> Iterator[dict[str, Any]]:
    """One line of what the tool reported, if anything, and one per scope of figures from its requests."""
    parts: list[tuple[str, Row]] = []
    if row["source"]:
        phases = ", all phases" if any(each["scope"] == "all" for each in raw) else ""
        parts.append((f"{_source_text(row)}{phases}", row))
    for each in sorted(raw, key=lambda each: each["scope"]):
        # Requests on the border of two phases are in a phase of both names.
        others = [phase for phase in each["phases"] if phase != "test" and " / " not in phase]
        scope = f"all phases ({', '.join(others)} too)" if each["scope"] == "all" else "measured phase alone"
        parts.append((f"every request, {scope}" if len(raw) > 1 else "every request", each))
    for position, (evidence, figures) in enumerate(parts):
        coarse_ns = row["resolution_ns"] or 0
        unsupported = [] if figures is row else _unsupported_in(figures)
        yield row | {
            "first": position == 0,
            "span": len(parts),
            "evidence_text": evidence,
            "computed": figures is not row,
            "n": figures["requests"],
            "share": figures["success"],
            "lasted": duration(row["duration_s"]) if row["duration_s"] else "–",
            "unsupported": unsupported,
            "figures": {
                name: exact(None if name in unsupported else figures[name], unit, coarse_ns) for name in FIGURES
            },
        }


def _unsupported_in(figures: Row) -> list[str]:
    """Percentiles that a run's requests are too few for."""
    return [name for name, share in _PERCENTILES.items() if not stats.estimable(figures["requests"], share)]


def _unsupported(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if any(line["unsupported"] for line in lines):
        yield "Percentiles are computed from single requests where ten of them or more are expected on either side."


def _source_text(row: Row) -> str:
    """Where a run's reported figures come from."""
    tool, doubt = row["generator"] or "unknown tool", " (see problems)" if row["doubted"] else ""
    if row["source"].endswith((".summary.csv", ".summary.csv.zst")):
        return f"a printed table of {tool}'s figures{doubt}"
    return f"{tool}'s {'histogram' if row['evidence'] == 'histogram' else 'report'}{doubt}"


def exact(latency_ns: float | None, unit: Unit, resolution_ns: float | None) -> str:
    """A latency with exactly the digits that the tool has: whole multiples of its resolution."""
    if latency_ns is None or math.isnan(latency_ns):
        return "–"
    text = in_steps(latency_ns, unit, max(resolution_ns or 1, 1))
    is_fine = "." in text and (resolution_ns or 1) < COARSE_NS
    return text.rstrip("0").rstrip(".") if is_fine else text


def _notes(rows: Sequence[Row], many: Mapping[tuple[float, str], int]) -> Iterator[str]:
    coarse = {row["generator"]: row["resolution_ns"] for row in rows if (row["resolution_ns"] or 0) >= COARSE_NS}
    for generator, resolution_ns in sorted(coarse.items(), key=lambda item: str(item[0])):
        step = resolution_text(resolution_ns)
        yield (
            f"Latencies of {generator} come in whole steps of {step}: no figure here is finer, and figures that "
            f"differ by {step} or less may be the same."
        )
    single = sum(number == 1 for number in many.values())
    if many and single == len(many):
        yield (
            "There is only one run of each variant at each load, which does not show how much a figure would change if "
            "the run were repeated."
        )
    elif single:
        yield (
            f"Of {counted(single, 'variant and load', 'pairs of variant and load')} there is only one run, which does "
            "not show how much a figure would change if it were repeated."
        )


def has_loads(reported: Reported) -> bool:
    """Whether reports are of several loads, so that there is something to draw across them."""
    return len({row["rate"] for row in reported.rows if row["source"]}) > 1


def chart_rows(reported: Reported, unit: Unit) -> list[Row]:
    """A row per run of what its tool reported; ``value`` by the statistics that a chart offers."""
    return [
        {
            "variant": row["variant"],
            "load": row["rate"],
            "run": row["run"],
            "evidence": _source_text(row),
            "value": {name: unit.of(row[column]) for name, column in CHARTED.items()},
        }
        for row in reported.rows
        if row["source"] and not row["excluded"]
    ]


def histogram_rows(reported: Reported, unit: Unit) -> list[Row]:
    """The percentiles of histograms: a row per bound of a run's, shares in percent."""
    return [
        {
            "variant": row["variant"],
            "series": f"run {row['run']} at {rate_text(row['rate'])}",
            "value": unit.of(row["upper_ns"]),
            "share": 100 * row["up_to"] / row["total"],
            "beyond": row["total"] / max(row["total"] - row["up_to"], 1.0),
        }
        for row in reported.bounds
        if row["total"]
    ]


# --- what the latencies of a tool mean --------------------------------------------------------------------------------


def meanings(queries: Queries, runs: Sequence[Row]) -> list[Row]:
    """The table of tools on a comparison across tools; empty where all latencies mean the same."""
    tools = sorted({str(run["generator"]) for run in runs})
    if len(set(map(load_generators.meaning, tools))) < 2:
        return []
    known = {row["generator"]: _meaning(row) for row in queries.rows("table_rows", name="generators")}
    return [
        known.get(tool, {})
        | {
            "tool": tool,
            "models": joined(sorted({str(run["load_model"]) for run in runs if str(run["generator"]) == tool})),
        }
        for tool in tools
    ]


def _meaning(row: Row) -> Row:
    return row | {
        "stamp": _STAMPS.get(row["stamp"], row["stamp"]),
        "resolution": resolution_text(row["resolution_ns"]),
    }
