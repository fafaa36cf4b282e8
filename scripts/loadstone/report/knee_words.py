"""What each variant carries, in words: rows of `knees` of one scope -> a sentence each. Texts are plain."""

from collections.abc import Iterable, Mapping

from loadstone.report.numbers import share, significant
from loadstone.report.queries import Row
from loadstone.text import rate_text

_BEYOND = {
    "throughput": "beyond, fewer requests per second are answered than are sent",
    "latency": "beyond, latency leaves its plateau",
    None: "beyond, it is overloaded",
}


def knees(rows: Iterable[Row], labels: Mapping[str, str]) -> list[str]:
    """A sentence per variant from rows of `knees`: the highest rate that it carries."""
    return [text for row in rows if (text := _knee(row, labels.get(row["variant"], row["variant"])))]


def _knee(row: Row, variant: str) -> str | None:
    measured = sorted((*row["carried"], *row["near"], *row["beyond"]))
    if row["knee_rate"] is None:
        if row["carried"] and len(measured) > 1 and max(row["carried"]) == measured[-1]:
            return f"{variant} carries every load that was measured, up to {rate_text(measured[-1])} requests/s."
        return None
    ends = [rate_text(row[name]) if row[name] is not None else None for name in ("low", "high")]
    between = {
        (True, True): f" ({share(row['confidence'])} interval {ends[0]} to {ends[1]})",
        (True, False): f" (at least {ends[0]}; what it is at most, no measured load tells)",
        (False, True): f" (at most {ends[1]}; what it is at least, no measured load tells)",
    }.get((ends[0] is not None, ends[1] is not None), "")
    return f"{variant} carries {significant(row['knee_rate'])} requests/s{between}; {_BEYOND[row['by']]}."
