"""Which verdicts a weakness strikes: rows of `effects` and `claims` of one scope -> marks beside verdicts."""

from collections.abc import Iterable, Sequence
from typing import Any

from loadstone.analysis.caveats import ACCOUNTED_FOR, CONFOUNDING, SERIOUS
from loadstone.readers import load_generators
from loadstone.report.queries import Row
from loadstone.stats.bootstrap import ERRORS

# How runs went on, and what failed: that weakens latencies, not how many requests failed.
_OF_LATENCIES = ("warmup_inside", "unsettled", "failures")


def weakened(effects: Iterable[Row], claims: Iterable[Row]) -> list[Row]:
    """The same rows of `effects`, each with the kinds of claims that strike one of its two cells (`weakened`)."""
    heavy = [row for row in claims if _is_heavy(row)]
    cells = [{_place(cell, "variant") for cell in row["cells"]} for row in heavy]
    found = []
    for effect in effects:
        own = {_place(effect, side) for side in ("variant", "baseline")}
        striking = (row for row, struck in zip(heavy, cells, strict=True) if own & struck)
        found.append(effect | {"weakened": _concerned(effect, striking)})
    return found


def _is_heavy(claim: Row) -> bool:
    return (claim["weight"] == SERIOUS or claim["claim"] in CONFOUNDING) and claim["claim"] not in ACCOUNTED_FOR


def _place(row: Row, side: str) -> tuple[Any, ...]:
    """A cell, and how it was measured: of tools side by side, each has its own."""
    tool = row["generator"].partition(", ")[0]  # of several that measure alike
    return row["rate"], row[side], row["load_model"], *load_generators.meaning(tool)


def _concerned(effect: Row, claims: Iterable[Row]) -> Sequence[str]:
    of_failures = effect["statistic"] == ERRORS
    return list(dict.fromkeys(row["claim"] for row in claims if not (of_failures and _is_of_latencies(row))))


def _is_of_latencies(claim: Row) -> bool:
    """Failures that campaigns tell unlike weaken latencies too, but latencies no number of failures."""
    return claim["claim"] in _OF_LATENCIES or (claim["claim"] == "campaigns_disagree" and claim["statistic"] != ERRORS)
