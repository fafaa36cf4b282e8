"""Which verdicts a weakness strikes: rows of `effects` and `claims` of one scope -> marks beside verdicts."""

from collections.abc import Iterable, Sequence

from loadstone.report.queries import Row
from loadstone.stats.bootstrap import ERRORS
from loadstone.tables.claims.declared import CONFOUNDING, HEEDED, SERIOUS

# How runs went on, and what failed: that weakens latencies, not how many requests failed.
_OF_LATENCIES = ("warmup_inside", "unsettled", "failures")


def weakened(effects: Iterable[Row], claims: Iterable[Row]) -> list[Row]:
    """The same rows of `effects`, each with the kinds of claims that strike one of its two cells (`weakened`)."""
    heavy = [row for row in claims if _is_heavy(row)]
    cells = [{(cell["rate"], cell["variant"], cell["load_model"]) for cell in row["cells"]} for row in heavy]
    found = []
    for effect in effects:
        own = {(effect["rate"], effect[side], effect["load_model"]) for side in ("variant", "baseline")}
        kinds = (row["claim"] for row, struck in zip(heavy, cells, strict=True) if own & struck)
        found.append(effect | {"weakened": _concerned(effect, kinds)})
    return found


def _is_heavy(claim: Row) -> bool:
    return (claim["weight"] == SERIOUS or claim["claim"] in CONFOUNDING) and claim["claim"] not in HEEDED


def _concerned(effect: Row, kinds: Iterable[str]) -> Sequence[str]:
    of_failures = effect["statistic"] == ERRORS
    return [kind for kind in dict.fromkeys(kinds) if not (of_failures and kind in _OF_LATENCIES)]
