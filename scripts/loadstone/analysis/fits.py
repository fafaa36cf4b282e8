"""Lines fitted over the runs of a comparison: table `fits`. Reads no raw file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.config.comparisons import Comparison, Fit
from loadstone.readers import load_generators
from loadstone.stats import lines
from loadstone.stats.lines import Line

_Row = dict[str, Any]

_RUN = ("app", "host", "timestamp", "variant", "rate", "variant_dir", "run")


@dataclass(frozen=True)
class Point:
    """One run: what it was measured at and what was found, in the fit's unit, and what that rests on."""

    x: float
    y: float
    variant: str
    rate: float
    run: int
    evidence: str


@dataclass(frozen=True)
class Fitted:
    """A fit with its points. Without a `line` there is a `problem`; `n_left_out` runs have no number for x, or no y."""

    fit: Fit
    points: Sequence[Point]
    n_left_out: int
    line: Line | None
    problem: str | None


def fit_all(
    comparison: Comparison, counting: Sequence[_Row], connection: duckdb.DuckDBPyConnection, confidence: float
) -> Iterator[Fitted]:
    """Every fit that the comparison asks for, over its valid runs (`counting`); `confidence` is that of intervals."""
    for fit in comparison.fits:
        yield _fitted(fit, counting, connection, confidence)


def rows(comparison: Comparison, fitted: Sequence[Fitted]) -> Iterator[_Row]:
    """Rows of table `fits`."""
    for each in fitted:
        found = asdict(each.line) if each.line else {}
        xs = [point.x for point in each.points]
        yield found | {
            "comparison": comparison.id,
            "app": comparison.app,
            "x": each.fit.x,
            "of": each.fit.of,
            "name": each.fit.name,
            "unit": each.fit.unit,
            "n_runs": len(xs),
            "n_levels": len(set(xs)),
            "n_left_out": each.n_left_out,
            "x_min": min(xs, default=None),
            "x_max": max(xs, default=None),
            "problem": each.problem,
        }


def _fitted(fit: Fit, counting: Sequence[_Row], connection: duckdb.DuckDBPyConnection, confidence: float) -> Fitted:
    if not counting:
        return Fitted(fit, [], 0, None, "there is no valid run")
    connection.register("counting", pa.table({name: [run[name] for run in counting] for name in _RUN}))
    query = sql.load("comparison_points")
    found = connection.sql(query, params={"of": fit.of, "name": fit.name or ""}).to_arrow_table().to_pylist()
    by_run = {_key(run): run for run in counting}
    scale = 1e-6 if fit.unit == "ms" else 1.0
    points, used = [], []
    for row in found:
        x = _x(fit, by_run[_key(row)])
        if x is not None:
            used.append(by_run[_key(row)])
            points.append(Point(x, row["value"] * scale, row["variant"], row["rate"], row["run"], row["evidence"]))
    line, problem = None, _problem(fit, points, used)
    if problem is None:
        line = lines.line([point.x for point in points], [point.y for point in points], confidence)
    return Fitted(fit, points, len(counting) - len(points), line, problem)


def _key(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in _RUN if name != "app")


def _x(fit: Fit, run: Mapping[str, Any]) -> float | None:
    """The run's number for x: its load, or one of its labels where that is a number."""
    if fit.x == "rate":
        return float(run["rate"])
    label = str(dict(run["labels"] or {}).get(fit.x, ""))
    try:
        value = float(label) if label.isascii() else float("nan")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _problem(fit: Fit, points: Sequence[Point], used: Sequence[Mapping[str, Any]]) -> str | None:
    """Why there is no line. Runs measured in different ways never share one."""
    models = sorted({str(run["load_model"]) for run in used})
    tools = sorted({str(run["generator"]) for run in used})
    if len(models) > 1:
        return f"its runs are of different load models ({', '.join(models)}), which never share a statistic"
    if fit.unit == "ms" and len({load_generators.meaning(tool) for tool in tools}) > 1:
        return f"its runs are of different load generators ({', '.join(tools)}), whose latencies are not comparable"
    if len(points) < lines.LEAST_POINTS:
        have = "1 run has" if len(points) == 1 else f"{len(points)} runs have"
        return f"{have} both a number for {fit.x} and this figure; it takes {lines.LEAST_POINTS}"
    if len({point.x for point in points}) == 1:
        return f"all runs have the same {fit.x}"
    return None
