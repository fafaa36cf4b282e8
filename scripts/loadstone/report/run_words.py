"""The shape of a run and how it was sent, in words with their evidence."""

from collections.abc import Callable, Iterator
from math import isclose

from loadstone.analysis.run_behaviour import PERCENTILE_NAMES, halves
from loadstone.archive.run_records import RunRecord
from loadstone.report import clock_resolution
from loadstone.report.numbers import Unit, counted, duration, significant
from loadstone.report.queries import Row
from loadstone.stats import run_shape


def shape(row: Row, unit: Unit) -> str:
    """``drifting up: 31 % over the run, p < 0.001``; of several shapes all, the main one first."""
    names = dict.fromkeys((row["shape"], *(row["shapes"] or ())))
    return "; also ".join(_one(name, row, unit) for name in names)


def late(row: Row, unit: Unit) -> str:
    """That a run was sent late: its send lag and the limit."""
    lag, limit = (f"{significant(unit.of(row[name]))} {unit.symbol}" for name in ("judged_lag_ns", "lag_limit_ns"))
    return f"sent late: {PERCENTILE_NAMES[row['judged_by']].removeprefix('the ')} of the send lag {lag}, limit {limit}"


def busy(record: RunRecord) -> Iterator[str]:
    """That the machine had more to do than processors for it, where that was recorded: it may be the reason."""
    if record.cpus and record.load_1min is not None and record.load_1min > record.cpus:
        cpus = counted(int(record.cpus), "CPU")
        yield f"the machine was busy: a load average of {record.load_1min:.1f} with {cpus}, right after the run"


def probability(p: float | None) -> str:
    """``p < 0.001``, ``p = 0.012``; nothing where there is none."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _one(name: str, row: Row, unit: Unit) -> str:
    if name == run_shape.CHANGING_LEVEL:
        evidence = _changing_level(row, unit)
    else:
        evidence = _EVIDENCE[name](row) if name in _EVIDENCE else ""
    return f"{name}: {evidence}" if evidence else name


def _warming_up(row: Row) -> str:
    said = f"its slow start lengthens the mean by {_percent(row['warmup_share'])}"
    if row["warmup_requests"] is None:
        return f"{said}; no end of it in the first half"
    after = f" ({duration(row['warmup_s'])})" if row["warmup_s"] is not None else ""
    return f"{said}; over after {row['warmup_requests']:,} requests{after}"


def _drifting(row: Row) -> str:
    change = f"{_percent(abs(row['change_share']))} over the run"
    # The probability is that of a straight line: it is nothing about a curve.
    if isclose(row["change_share"], row["trend_share"], rel_tol=1e-6):
        return _together(change, probability(row["trend_p"]))
    return f"{change}, most of it at the start"


def _changing_level(row: Row, unit: Unit) -> str:
    levels = " to ".join(clock_resolution.text(level, unit, row["resolution_ns"]) for level in row["levels_ns"])
    return f"{levels} {unit.symbol}, at request {' and '.join(f'{seq:,}' for seq in row['change_seqs'])}"


def _periodic(row: Row) -> str:
    every = duration(row["period_s"]) if row["period_s"] is not None else f"{row['period_requests']:,.0f} requests"
    above = f"peak {_percent(row['period_share'])} above trough" if row["period_share"] is not None else ""
    return _together(f"every {every}", above, probability(row["period_p"]))


def _several_modes(row: Row) -> str:
    return _together(f"dip {significant(row['dip'])}", probability(row["dip_p"])) if row["dip"] is not None else ""


def _percent(share: float | None) -> str:
    return f"{significant(None if share is None else 100 * share, 2)} %"


def _uneven(row: Row) -> str:
    return halves(row["half_ratio"])


def _together(*parts: str) -> str:
    return ", ".join(filter(None, parts))


_EVIDENCE: dict[str, Callable[[Row], str]] = {
    run_shape.WARMING_UP: _warming_up,
    run_shape.DRIFTING_UP: _drifting,
    run_shape.DRIFTING_DOWN: _drifting,
    run_shape.UNEVEN: _uneven,
    run_shape.PERIODIC: _periodic,
    run_shape.SEVERAL_MODES: _several_modes,
}
