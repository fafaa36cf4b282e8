"""Why requests failed: causes of table `error_causes`, with whose side they lie on, their cells and their texts."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from loadstone.analysis.error_causes import BY_NAME
from loadstone.report.labels import SHOWN
from loadstone.report.queries import Questions, Row
from loadstone.text import rate_text

SIDES = {
    "client": "load generator",
    "server": "what is attacked",
    "proxy": "a proxy before the service",
    "unknown": "not told",
}
_VARIANTS_SHOWN = 6
_TEXTS_SHOWN = 20


def context(questions: Questions, labels: Mapping[str, str]) -> dict[str, Any]:
    """The variables of ``causes.html``."""
    rows = questions.rows("page_error_causes")
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
        "words": known.words if known else cause,
        "side": SIDES.get(rows[0]["side"], rows[0]["side"]),
        "n_requests": sum(row["n_requests"] for row in rows),
        "codes": sorted({row["code"] for row in rows if row["code"]}),
        "cells": _cells((cell for row in rows for cell in row["cells"]), labels),
        "texts": texts[:_TEXTS_SHOWN],
        "n_more": sum(row["n_texts"] for row in rows) - len(texts[:_TEXTS_SHOWN]) if texts else 0,
    }


def _cells(cells: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    """``Envoy at 100, 200; Direct at 300 to 1,000 (4 loads)``."""
    rates: dict[str, set[float]] = {}
    for cell in cells:
        rates.setdefault(cell["variant"], set()).add(cell["rate"])
    order = list(labels)
    names = sorted(rates, key=lambda name: (order.index(name) if name in labels else len(order), name))
    said = [f"{labels.get(name, name)} at {_loads(sorted(rates[name]))}" for name in names[:_VARIANTS_SHOWN]]
    return "; ".join(said) + (f"; {len(names) - _VARIANTS_SHOWN} more" if len(names) > _VARIANTS_SHOWN else "")


def _loads(rates: Sequence[float]) -> str:
    if len(rates) <= 4:
        return ", ".join(map(rate_text, rates))
    return f"{rate_text(rates[0])} to {rate_text(rates[-1])} ({len(rates)} loads)"
