"""What is known of each run, in words: the shape of its latency over time, and how punctually it was sent."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.archive.run_records import RunRecord
from loadstone.report import run_words
from loadstone.report.labels import SHOWN
from loadstone.report.numbers import Unit, counted, rate_name
from loadstone.report.queries import Questions, Row, in_order
from loadstone.stats import run_shape

_Run = tuple[str, str, int]  # variant, folder and number, at one rate
_Recorded = tuple[float, str, int]  # rate, folder and number
FIGURES = ("mean", "p50", "p90", "p99", "p999")


@dataclass(frozen=True)
class RunFindings:
    """Rows of ``page_run_shapes.sql`` and ``page_sending.sql``."""

    shapes: Sequence[Row]
    sending: Sequence[Row]

    def at(self, rate: float) -> list[Row]:
        """Those of the runs at one rate."""
        return [row for row in (*self.shapes, *self.sending) if row["rate"] == rate]


def gather(questions: Questions) -> RunFindings:
    """What the tables hold of the campaigns that `questions` are about."""
    return RunFindings(questions.rows("page_run_shapes"), questions.rows("page_sending"))


def of_rate(findings: RunFindings, rate: float, unit: Unit) -> dict[_Run, dict[str, Any]]:
    """What the run inspector says of each run at a rate, latencies in `unit`: `shape` and `sending`."""
    found: dict[_Run, dict[str, Any]] = {}
    for row in findings.shapes:
        if row["rate"] == rate:
            words, is_unsettled = run_words.shape(row, unit), row["shape"] in run_shape.UNSETTLED
            found.setdefault(_key(row), {})["shape"] = {"name": row["shape"], "words": words, "unsettled": is_unsettled}
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
    listed = in_order(_listed(findings, unit, records), list(labels))
    return {
        "run_shapes": judged,
        "shapes_say": _counts(judged, len(findings.shapes)),
        "found_runs": listed[:SHOWN],
        "n_found_runs": len(listed),
        "unsettled": Counter(
            (row["rate"], row["variant"])
            for row in judged
            if row["shape"] in run_shape.UNSETTLED and not row["excluded"]
        ),
    }


def _listed(findings: RunFindings, unit: Unit, records: Mapping[_Recorded, RunRecord]) -> Iterator[Row]:
    """Runs that are not flat, or were sent late: a row each, with `said` of it and the `address` that shows it."""
    late = {(row["rate"], *_key(row)): row for row in findings.sending if row["limited"]}
    numbers = Counter((row["rate"], row["variant"], row["run"]) for row in findings.shapes)
    for row in findings.shapes:
        limited = late.get((row["rate"], *_key(row)))
        is_flat = row["shape"] in (run_shape.FLAT, run_shape.TOO_FEW)
        if is_flat and limited is None:
            continue
        is_one = numbers[row["rate"], row["variant"], row["run"]] == 1
        yield row | {
            "said": [
                *([] if is_flat else [run_words.shape(row, unit)]),
                *([run_words.late(limited, unit)] if limited else []),
                *run_words.busy(records.get((row["rate"], row["variant_dir"], row["run"]), RunRecord())),
            ],
            "is_unsettled": row["shape"] in run_shape.UNSETTLED,
            "address": {
                "rate": rate_name(row["rate"]),
                "variant": row["variant"],
                "run": str(row["run"]) if is_one else f"{row['run']}@{row['variant_dir']}",
            },
        }


def _counts(judged: Sequence[Row], n_runs: int) -> str:
    kinds = Counter(row["shape"] for row in judged)
    said = ", ".join(f"{number:,} {shape}" for shape, number in kinds.most_common())
    few = f" {counted(n_runs - len(judged), 'run')} had too few requests to tell." if n_runs > len(judged) else ""
    return f"{counted(len(judged), 'run')}: {said}.{few}" if judged else few.strip()


def _sending(row: Row, unit: Unit) -> dict[str, Any]:
    if row["refused"] is not None:
        return {"refused": row["refused"]}
    return {
        "asked": row["asked_rate"],
        "achieved": float(f"{row['achieved_rate']:.6g}"),
        "lag": [unit.of(row[f"lag_{name}_ns"]) for name in ("p50", "p99", "max")],
        "limit": unit.of(row["lag_limit_ns"]),
        "limited": bool(row["limited"]),
        "observed": [unit.of(row[f"observed_{name}_ns"]) for name in FIGURES],
        "corrected": [unit.of(row[f"corrected_{name}_ns"]) for name in FIGURES],
    }


def _key(row: Row) -> _Run:
    return row["variant"], row["variant_dir"], row["run"]
