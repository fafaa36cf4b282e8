"""Several generators that shared a run's load: how late each was, and whether they kept time: table `senders`."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.analysis import run_requests
from loadstone.analysis.run_requests import Source
from loadstone.digits import ms

_Row = dict[str, Any]

_CLOCK = ("clock_offset_ns", "clock_uncertainty_ns", "clock_drift_ns")


def senders(source: Source, facts: Sequence[_Row]) -> list[list[_Row]]:
    """The rows of `senders` of each of `facts`; none for a run of one generator."""
    found: dict[tuple[str, int], list[_Row]] = {}
    for file, runs in run_requests.by_file(facts):
        if any((run["generators"] or 1) > 1 for run in runs):
            for row in source.of_cell("senders", file, runs):
                found.setdefault((file, row["run"]), []).append(row)
    return [_of_run(fact, found.get((fact["requests_file"] or "", fact["run"]), [])) for fact in facts]


def _of_run(fact: _Row, found: Sequence[_Row]) -> list[_Row]:
    """Starts are compared by the collecting machine's clock: each generator's own, less what it is ahead."""
    told = {each["generator"]: each for each in fact["senders"] or []}
    starts = [row["zero_ns"] - (told.get(row["generator"], {}).get("clock_offset_ns") or 0) for row in found]
    rows = []
    for row, start_ns in zip(found, starts, strict=True):
        about = told.get(row["generator"], {})
        rows.append(
            run_requests.key(fact)
            | {name: value for name, value in row.items() if name not in ("run", "zero_ns")}
            | {"start_lag_ns": float(start_ns - min(starts)), "place": about.get("place")}
            | {name: about.get(name) for name in _CLOCK}
        )
    return rows


def apart_ns(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """How far a run's generators may have been from each other: in their clocks, and in when they began (ns).

    Clocks by the largest difference of two, with both uncertainties and what they changed meanwhile. Starts likewise:
    what is known of them is as uncertain as the clocks by which they are compared.
    """
    known = [row for row in rows if row["clock_offset_ns"] is not None]
    slack = sorted((row["clock_uncertainty_ns"] or 0) + abs(row["clock_drift_ns"] or 0) for row in known)
    offsets = [row["clock_offset_ns"] for row in known]
    uncertain = sum(slack[-2:])
    clocks = float(max(offsets) - min(offsets) + uncertain) if len(known) > 1 else 0.0
    starts = max((row["start_lag_ns"] for row in rows), default=0.0)
    return clocks, starts + (uncertain if len(known) > 1 else 0.0)


def told(rows: Sequence[Mapping[str, Any]], limit_ns: float) -> str | None:
    """That a run's generators did not keep time with each other, in words; None where they did."""
    clocks_ns, starts_ns = apart_ns(rows)
    texts = [f"their clocks up to {ms(clocks_ns)}"] if clocks_ns > limit_ns else []
    texts += [f"their starts up to {ms(starts_ns)}"] if starts_ns > limit_ns else []
    if not texts:
        return None
    return f"its {len(rows)} generators were apart: {' and '.join(texts)}, the limit is {ms(limit_ns)}"
