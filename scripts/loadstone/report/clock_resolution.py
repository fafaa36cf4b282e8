"""Statistics of latencies that come in coarse steps (Artillery: whole milliseconds): none may look finer than that."""

import math
from collections.abc import Iterable, Sequence

from loadstone.report.numbers import Unit, significant
from loadstone.report.queries import Row
from loadstone.tables.schema import PERCENTILES

COARSE_NS = 100_000  # steps from here on limit what may be concluded
_WHOLE = ("mean_ns", "run_mean_ns", "ok_run_mean_ns", "all_raw_data_mean_ns", "all_raw_data_ok_mean_ns")


def resolution_text(resolution_ns: float | None) -> str:
    """``1 ms``, ``0.1 ms``, ``1 ns``; ``unknown`` where nobody knows it."""
    if not resolution_ns:
        return "unknown"
    return f"{resolution_ns:g} ns" if resolution_ns < 1000 else f"{resolution_ns / 1e6:g} ms"


def rounded(rows: Iterable[Row]) -> list[Row]:
    """The same rows (of `cells` or `comparisons`); latencies in coarse steps are whole steps in them.

    An interval reaches to the steps around it, and to half a step at least on either side of its value's step.
    """
    return [_rounded(row) if (row["resolution_ns"] or 0) >= COARSE_NS else row for row in rows]


def _rounded(row: Row) -> Row:
    step = row["resolution_ns"]
    found = dict(row)
    for name in (*_WHOLE, *(f"{part}{each}_ns" for each in PERCENTILES for part in ("", "ok_"))):
        if found.get(name) is not None:
            found[name] = round(found[name] / step) * step
    for name in PERCENTILES:
        value, low, high = (found.get(f"{name}{part}_ns") for part in ("", "_low", "_high"))
        if value is not None and low is not None and high is not None:
            found[f"{name}_low_ns"] = max(0.0, min(math.floor(low / step) * step, value - step / 2))
            found[f"{name}_high_ns"] = max(math.ceil(high / step) * step, value + step / 2)
    return found


def text(latency_ns: float | None, unit: Unit, resolution_ns: float | None) -> str:
    """A latency in the page's unit for a table: whole steps where these are coarse, else three digits."""
    if latency_ns is not None and resolution_ns and resolution_ns >= COARSE_NS:
        return stepped(latency_ns, unit, resolution_ns)
    return significant(unit.of(latency_ns))


def spread(std_ns: float | None, unit: Unit, resolution_ns: float | None) -> str:
    """A standard deviation for a table; one of less than a coarse step is not told from none."""
    if std_ns is not None and resolution_ns and std_ns < resolution_ns and resolution_ns >= COARSE_NS:
        return f"less than {stepped(resolution_ns, unit, resolution_ns)}"
    return f"± {text(std_ns, unit, resolution_ns)}"


def stepped(latency_ns: float, unit: Unit, resolution_ns: float) -> str:
    """A latency as a whole number of steps, with as many decimals as these need."""
    decimals = max(0, math.ceil(math.log10(unit.length_ns / resolution_ns)))
    return f"{round(latency_ns / resolution_ns) * resolution_ns / unit.length_ns:,.{decimals}f}"


def step(runs: Iterable[Row], unit: Unit) -> list[float] | None:
    """The least step of these runs' latencies in the page's unit and its decimals, if all of them are coarse."""
    steps_ns = {run["resolution_ns"] or 0 for run in runs if run["evidence"] == "raw"}
    least_ns = min(steps_ns, default=0)
    if least_ns < COARSE_NS:
        return None
    return [least_ns / unit.length_ns, max(0, math.ceil(math.log10(unit.length_ns / least_ns)))]


def alike(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[Row, Row, list[str]]]:
    """Pairs of rows of one load whose latencies come in coarse steps, and the columns that a step or less parts."""
    found = []
    for place, one in enumerate(rows):
        for other in rows[place + 1 :]:
            step = max(one["resolution_ns"] or 0, other["resolution_ns"] or 0)
            if one["rate"] != other["rate"] or step < COARSE_NS:
                continue
            names = [name for name in columns if _within(one[name], other[name], step)]
            if names:
                found.append((one, other, names))
    return found


def _within(one: float | None, other: float | None, step: float) -> bool:
    return one is not None and other is not None and abs(one - other) <= step
