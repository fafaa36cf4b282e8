"""Sections on what went wrong: why requests failed, and what happened to a cluster's pods during an attack."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from loadstone.analysis.error_causes import BY_NAME
from loadstone.archive.run_records import RunRecord
from loadstone.report.numbers import SHOWN
from loadstone.report.queries import Queries, Row, in_order
from loadstone.tables.exclusion import DOUBTFUL
from loadstone.text import counted, rate_text

# --- incidents of pods ------------------------------------------------------------------------------------------------


_EACH = 12  # incidents shown of a run
_LONGEST = 300  # characters shown of a text from the cluster

# Kinds of incidents in words. Kinds of later versions keep their own name.
WORDS = DOUBTFUL | {"warning": "warnings", "added": "pods created"}
_NOT_INCIDENTS = {"unknown": "not known", "more": "more than was recorded"}


def context(queries: Queries, recorded: Sequence[RunRecord], labels: Mapping[str, str], n_runs: int) -> dict[str, Any]:
    """The variables of ``incidents.html``, and a notice for the top of the page.

    `recorded` are the records of all runs, `labels` those of variants, in the order of charts and tables; `n_runs` is
    the number of runs with a result.
    """
    doubtful = list(DOUBTFUL)
    rows = queries.rows("page_incidents", doubtful=doubtful, shown=SHOWN, each=_EACH)
    kinds = queries.rows("page_incident_kinds", doubtful=doubtful, shown=SHOWN)
    first = rows[0] if rows else {"n_runs": 0, "n_doubtful": 0, "n_doubtful_valid": 0}
    in_cluster = [record for record in recorded if record.in_cluster]
    n_runs_of = {kind["kind"]: kind["n_runs"] for kind in kinds}
    return {
        "incidents_notice": _notice(first["n_doubtful"], first["n_doubtful_valid"], n_runs),
        "incident_runs": [_run(row, labels) for row in sorted(in_order(rows, labels), key=lambda row: row["worst"])],
        "incident_kinds": [
            kind | {"text": _text(kind["kind"]).capitalize(), "is_doubtful": kind["kind"] in DOUBTFUL}
            for kind in kinds
            if kind["kind"] not in _NOT_INCIDENTS
        ],
        "n_incident_runs": first["n_runs"],
        "n_cluster_runs": len(in_cluster),
        "n_unwatched": sum(not record.watched for record in in_cluster),
        "n_incidents_unknown": n_runs_of.get("unknown", 0),
        "n_incidents_more": n_runs_of.get("more", 0),
    }


def _run(row: Row, labels: Mapping[str, str]) -> Row:
    return row | {
        "variant": labels.get(row["variant"], row["variant"]),
        "happened": ", ".join(map(_counted, row["kinds"])),
        "incidents": list(map(_described, row["incidents"])),
        "n_more": row["n_incidents"] - len(row["incidents"]),
        "meaning": _meaning(row),
    }


def _counted(kind: Row) -> str:
    return _NOT_INCIDENTS.get(kind["kind"]) or f"{_text(kind['kind'])}: {kind['n']:,}"


def _text(kind: str) -> str:
    return WORDS.get(kind, _cut(kind))


def _described(incident: Row) -> tuple[str, str]:
    """The object of an incident, and what happened to it."""
    about = incident["object"] or ""
    if incident["container"]:
        about += f", container {incident['container']}"
    text = str(incident["text"] or WORDS.get(incident["kind"], incident["kind"]))
    if incident["reason"] and incident["reason"] not in text:
        text = f"{incident['reason']}: {text}"
    times = f" ({incident['count']:,} times)" if incident["kind"] == "warning" and incident["count"] > 1 else ""
    return _cut(about), _cut(text) + times


def _meaning(row: Row) -> str:
    """Whether the run is valid, or why it is not."""
    if row["excluded"] is None:
        return "has no result"
    if row["excluded"]:
        return f"excluded: {_cut(row['exclusion_reason'] or 'no reason recorded')}"
    if row["tags"]:
        return f"valid; tagged {_cut(', '.join(row['tags']))}"
    return f"valid; tag {row['suggested']} is suggested" if row["suggested"] else "valid"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _notice(doubtful: int, counting: int, n_runs: int) -> str:
    """Notice about `doubtful` runs whose figures are in doubt, of which `counting` are valid; empty without any."""
    if not doubtful:
        return ""
    valid = f"{counting:,} of these runs are valid" if counting else "none of these runs is valid"
    if doubtful == 1:
        valid = "this run is valid" if counting else "this run is excluded"
    return (
        f"In {doubtful:,} of {counted(n_runs, 'run')}, pods or containers died, restarted or were moved during the "
        f"attack; {valid}."
    )


# --- causes of errors -------------------------------------------------------------------------------------------------


SIDES = {
    "client": "the load generator",
    "server": "the target",
    "proxy": "a proxy in front of the service",
    "unknown": "unknown",
}
_VARIANTS_SHOWN = 6
_TEXTS_SHOWN = 20


def causes_context(queries: Queries, labels: Mapping[str, str]) -> dict[str, Any]:
    """The variables of ``causes.html``."""
    rows = queries.rows("page_error_causes")
    found = []
    for (stream, cause), group in groupby(rows, key=lambda row: (row["stream"], row["cause"])):
        found.append(_cause(stream, cause, list(group), labels))
    unknown = [row for row in rows if row["cause"] == "unknown" and row["error"]]
    return {
        "causes": found[:SHOWN],
        "causes_streams": any(each["stream"] != "main" for each in found),
        "unknown_texts": unknown[:SHOWN],
        "n_unknown_texts": len(unknown),
    }


def _cause(stream: str, cause: str, rows: Sequence[Row], labels: Mapping[str, str]) -> dict[str, Any]:
    known = BY_NAME.get(cause)
    texts = [row for row in rows if row["error"]]
    return {
        "stream": stream,
        "cause": cause,
        "text": known.text if known else cause,
        "side": SIDES.get(rows[0]["side"], rows[0]["side"]),
        "n_requests": sum(row["n_requests"] for row in rows),
        "codes": sorted({row["code"] for row in rows if row["code"]}),
        "cells": _affected_cells((cell for row in rows for cell in row["cells"]), labels),
        "texts": texts[:_TEXTS_SHOWN],
        "n_more": sum(row["n_texts"] for row in rows) - len(texts[:_TEXTS_SHOWN]) if texts else 0,
    }


def _affected_cells(cells: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    """``Envoy at 100, 200; Direct at 300 to 1,000 (4 loads)``."""
    rates: dict[str, set[float]] = {}
    for cell in cells:
        rates.setdefault(cell["variant"], set()).add(cell["rate"])
    order = list(labels)
    names = sorted(rates, key=lambda name: (order.index(name) if name in labels else len(order), name))
    texts = [f"{labels.get(name, name)} at {_loads(sorted(rates[name]))}" for name in names[:_VARIANTS_SHOWN]]
    return "; ".join(texts) + (f"; {len(names) - _VARIANTS_SHOWN} more" if len(names) > _VARIANTS_SHOWN else "")


def _loads(rates: Sequence[float]) -> str:
    if len(rates) <= 4:
        return ", ".join(map(rate_text, rates))
    return f"{rate_text(rates[0])} to {rate_text(rates[-1])} ({len(rates)} loads)"
