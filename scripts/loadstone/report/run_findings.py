"""Section on single runs: the shape of each run's latency over time, and how late its requests were sent."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from loadstone.analysis.run_behaviour import halves
from loadstone.archive.run_records import RunRecord
from loadstone.percentiles import PERCENTILES, title
from loadstone.report import numbers
from loadstone.report.numbers import SHOWN, Unit, duration, joined, rate_name, significant
from loadstone.report.queries import Queries, Row, in_order
from loadstone.stats import estimable, run_shape
from loadstone.text import counted

_Run = tuple[str, str, int]  # variant, folder and number, at one rate
_Recorded = tuple[float, str, int]  # rate, folder and number
_FIGURES = ("mean", "p50", "p90", "p99", "p999")


@dataclass(frozen=True)
class RunFindings:
    """Rows of ``page_run_shapes.sql`` and ``page_sending.sql``."""

    shapes: Sequence[Row]
    sending: Sequence[Row]

    def at(self, rate: float) -> list[Row]:
        """The rows of runs at one rate."""
        return [row for row in (*self.shapes, *self.sending) if row["rate"] == rate]


def gather(queries: Queries) -> RunFindings:
    """Query the findings on the campaigns of `queries`."""
    return RunFindings(queries.rows("page_run_shapes"), queries.rows("page_sending"))


def of_rate(findings: RunFindings, rate: float, unit: Unit) -> dict[_Run, dict[str, Any]]:
    """What the run inspector shows of each run at a rate: ``shape`` and ``sending``, latencies in `unit`."""
    found: dict[_Run, dict[str, Any]] = {}
    for row in findings.shapes:
        if row["rate"] == rate:
            text, is_unsettled = shape_text(row, unit), row["shape"] in run_shape.UNSETTLED
            found.setdefault(_key(row), {})["shape"] = {"name": row["shape"], "text": text, "unsettled": is_unsettled}
    for row in findings.sending:
        if row["rate"] == rate:
            found.setdefault(_key(row), {})["sending"] = _sending(row, unit)
    return found


def context(
    findings: RunFindings, labels: Mapping[str, str], unit: Unit, records: Mapping[_Recorded, RunRecord]
) -> dict[str, Any]:
    """The variables of ``run_findings.html``; `unsettled`, by rate and variant, is for the table of cells.

    `records` are by rate, folder and run.
    """
    judged = [row for row in findings.shapes if row["shape"] != run_shape.TOO_FEW]
    listed = in_order(_found_runs(findings, unit, records), list(labels))
    return {
        "run_shapes": judged,
        "shape_counts": _shape_counts(judged, len(findings.shapes)),
        "found_runs": listed[:SHOWN],
        "n_found_runs": len(listed),
        "unsettled": Counter(
            (row["rate"], row["variant"])
            for row in judged
            if row["shape"] in run_shape.UNSETTLED and not row["excluded"]
        ),
    }


def _found_runs(findings: RunFindings, unit: Unit, records: Mapping[_Recorded, RunRecord]) -> Iterator[Row]:
    """Runs that are not flat, or were sent late: a row each, with `texts` and the `address` that shows it."""
    late = {(row["rate"], *_key(row)): row for row in findings.sending if row["limited"]}
    folders = Counter((row["rate"], row["variant"], row["run"]) for row in findings.shapes)
    for row in findings.shapes:
        limited = late.get((row["rate"], *_key(row)))
        is_flat = row["shape"] in (run_shape.FLAT, run_shape.TOO_FEW)
        if is_flat and limited is None:
            continue
        is_one = folders[row["rate"], row["variant"], row["run"]] == 1
        yield row | {
            "texts": [
                *([] if is_flat else [shape_text(row, unit)]),
                *([late_text(limited, unit)] if limited else []),
                *busy_text(records.get((row["rate"], row["variant_dir"], row["run"]), RunRecord())),
            ],
            "is_unsettled": row["shape"] in run_shape.UNSETTLED,
            "address": {
                "rate": rate_name(row["rate"]),
                "variant": row["variant"],
                "run": str(row["run"]) if is_one else f"{row['run']}@{row['variant_dir']}",
            },
        }


def _shape_counts(judged: Sequence[Row], n_runs: int) -> str:
    kinds = Counter(row["shape"] for row in judged)
    shapes = ", ".join(f"{number:,} {shape}" for shape, number in kinds.most_common())
    few = f" {counted(n_runs - len(judged), 'run')} had too few requests for a shape." if n_runs > len(judged) else ""
    return f"{counted(len(judged), 'run')}: {shapes}.{few}" if judged else few.strip()


def _sending(row: Row, unit: Unit) -> dict[str, Any]:
    if row["refused"] is not None:
        return {"refused": row["refused"]}

    unsupported = [name for name, share in PERCENTILES.items() if not estimable(row["requests"], share)]

    def figures(side: str) -> list[float | None]:
        return [None if name in unsupported else unit.of(row[f"{side}_{name}_ns"]) for name in _FIGURES]

    return {
        "requested": row["asked_rate"],
        "achieved": numbers.rounded(row["achieved_rate"], 6),
        "lag": [unit.of(row[f"lag_{name}_ns"]) for name in ("p50", "p99", "max")],
        "limit": unit.of(row["lag_limit_ns"]),
        "limited": bool(row["limited"]),
        "observed": figures("observed"),
        "corrected": figures("corrected"),
    }


def _key(row: Row) -> _Run:
    return row["variant"], row["variant_dir"], row["run"]


# --- sentences --------------------------------------------------------------------------------------------------------


def shape_text(row: Row, unit: Unit) -> str:
    """``drifting up: 31 % over the run, p < 0.001``; a run with several shapes has all of them, the main one first."""
    names = dict.fromkeys((row["shape"], *(row["shapes"] or ())))
    return "; also ".join(_shape_text(name, row, unit) for name in names)


def late_text(row: Row, unit: Unit) -> str:
    """The send lag of a run that was sent late, and the limit."""
    lag, limit = (f"{significant(unit.of(row[name]))} {unit.symbol}" for name in ("judged_lag_ns", "lag_limit_ns"))
    return f"sent late: {title(row['judged_by']).lower()} of the send lag {lag}, limit {limit}"


def busy_text(record: RunRecord) -> Iterator[str]:
    """Says that the load average was above the number of CPUs, if recorded, which may explain late requests."""
    if record.cpus and record.load_1min is not None and record.load_1min > record.cpus:
        cpus = counted(int(record.cpus), "CPU")
        yield f"the machine was busy: a load average of {record.load_1min:.1f} with {cpus}, right after the run"


def p_text(p: float | None) -> str:
    """``p < 0.001``, ``p = 0.012``; nothing without a p value."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _shape_text(name: str, row: Row, unit: Unit) -> str:
    evidence = _EVIDENCE[name](row, unit) if name in _EVIDENCE else ""
    return f"{name}: {evidence}" if evidence else name


def _warming_up(row: Row, _: Unit) -> str:
    text = f"its slow start raises the mean by {_percent(row['warmup_share'])}"
    if row["warmup_requests"] is None:
        return f"{text}; it does not end in the first half"
    after = f" ({duration(row['warmup_s'])})" if row["warmup_s"] is not None else ""
    return f"{text}; it ends after {row['warmup_requests']:,} requests{after}"


def _drifting(row: Row, _: Unit) -> str:
    change = f"{_percent(abs(row['change_share']))} over the run"
    # The p value is that of a straight line; it says nothing about a curve.
    if isclose(row["change_share"], row["trend_share"], rel_tol=1e-6):
        return joined((change, p_text(row["trend_p"])))
    return f"{change}, most of it at the start"


def _changing_level(row: Row, unit: Unit) -> str:
    levels = " to ".join(numbers.latency_text(level, unit, row["resolution_ns"]) for level in row["levels_ns"])
    return f"{levels} {unit.symbol}, at request {' and '.join(f'{seq:,}' for seq in row['change_seqs'])}"


def _periodic(row: Row, _: Unit) -> str:
    every = duration(row["period_s"]) if row["period_s"] is not None else f"{row['period_requests']:,.0f} requests"
    above = f"peak {_percent(row['period_share'])} above trough" if row["period_share"] is not None else ""
    return joined((f"every {every}", above, p_text(row["period_p"])))


def _several_modes(row: Row, _: Unit) -> str:
    return joined((f"dip {significant(row['dip'])}", p_text(row["dip_p"]))) if row["dip"] is not None else ""


def _percent(share: float | None) -> str:
    return f"{significant(None if share is None else 100 * share, 2)} %"


_EVIDENCE: dict[str, Callable[[Row, Unit], str]] = {
    run_shape.CHANGING_LEVEL: _changing_level,
    run_shape.WARMING_UP: _warming_up,
    run_shape.DRIFTING_UP: _drifting,
    run_shape.DRIFTING_DOWN: _drifting,
    run_shape.UNEVEN: lambda row, _: halves(row["half_ratio"]),
    run_shape.PERIODIC: _periodic,
    run_shape.SEVERAL_MODES: _several_modes,
}


# --- several load generators ------------------------------------------------------------------------------------------


def generators_context(queries: Queries) -> dict[str, Any]:
    """The variables of ``senders.html``."""
    rows = queries.rows("page_senders")
    processes = [row["place"] for row in rows if row["process"] is not None]
    return {
        "senders": rows[:SHOWN],
        "n_senders": len(rows),
        "n_generators": len({row["generator"] for row in rows}),
        "senders_share": len(set(processes)) < len(processes),
        "senders_clocks": any(row["clock_offset_ns"] is not None for row in rows),
    }
