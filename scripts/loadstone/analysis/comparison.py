"""Tables of some campaigns -> the rows of one comparison and its fitted lines (`fits`). Reads no raw file.

Two averages are those of the archive's former owners: ``vegeta-summaries`` (over runs, of what the tool reported of
each) and ``all-raw-data`` (over all requests); the other columns are computed as for `cells`. A row whose runs are all
that one cell counts takes these from there, so that only cells joined from several campaigns are computed anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.analysis import conclusions, distributions, replicates, run_requests
from loadstone.analysis.cache import Cache
from loadstone.analysis.run_requests import Source
from loadstone.analysis.scope import Settings, grouped, way
from loadstone.archive import MAIN_STREAM, Campaign
from loadstone.config.comparisons import Comparison, Fit
from loadstone.readers import load_generators
from loadstone.stats import Replicates, lines
from loadstone.stats.lines import Line
from loadstone.tables import database, layout, schema

_Row = dict[str, Any]

_COLUMNS = schema.TABLES["comparisons"].names
_TAKEN = _COLUMNS[_COLUMNS.index("n_requests") :]  # of the pooled requests of its runs, as a cell has them
_HEEDED = ("timeout_s", "load_model", "clock_set_back_s")  # of a run, by what is computed from its requests
_ALL_RAW_DATA = ("n_runs", "mean_ns", "std_ns", "ok_mean_ns", "ok_std_ns")


@dataclass(frozen=True)
class Selection:
    """The runs that a comparison is about, rows of ``comparison_runs.sql``.

    `counting` are those that its figures rest on, `excluded` those that no statistic counts, `left_out` those that fit
    one of its own patterns (each with its ``pattern``). Reasons in `refusals` forbid any figure.
    """

    counting: list[_Row] = field(default_factory=list)
    excluded: list[_Row] = field(default_factory=list)
    left_out: list[_Row] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def doubted(self) -> list[_Row]:
        """Those whose tool's own report contradicts itself or the requests beside it, as their ``doubts`` say.

        The method "vegeta-summaries" counts them, for it is the mean of what tools reported; readers are told.
        """
        return [run for run in self.counting if run["doubts"]]


def compare(
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    tables: Path,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> Selection:
    """Write the comparison's rows of table `comparisons` and all conclusions; say what they rest on.

    `campaigns` are those of its campaigns that are in the tables. Raises LoadstoneError when `tables` can't be written.
    """
    with database.connect(tables, campaigns) as connection:
        database.add_view(connection, tables, "facts", schema.FACTS, campaigns)
        selection = select(comparison, connection)
        database.add_view(connection, tables, "replicates", schema.REPLICATES, campaigns)
        counting = [] if selection.refusals else selection.counting
        comparing = _Comparing(
            comparison,
            counting=counting,
            excluded=selection.excluded,
            connection=connection,
            tables=tables,
            settings=settings,
        )
        rows, drawn = list(comparing.rows()), comparing.pictured()
        comparing.cache.save()
        fitted = list(fit_rows(comparison, list(fit_all(comparison, counting, connection, settings.confidence))))
    path = layout.comparison_file(tables, comparison.id, "fits")
    layout.write_rows(tables, path, fitted, schema.TABLES["fits"], keep_empty=True)
    layout.write_rows(
        tables, layout.comparison_file(tables, comparison.id), rows, schema.TABLES["comparisons"], keep_empty=True
    )
    for table, content in drawn.items():
        path = layout.comparison_file(tables, comparison.id, table)
        layout.write_rows(tables, path, content, schema.TABLES[table], keep_empty=True)
    conclusions.of_comparison(
        comparison,
        campaigns,
        tables,
        settings,
        series=comparing.series,
        found=comparing.replicates,
        excluded=[*selection.excluded, *selection.left_out],
    )
    return selection


def select(comparison: Comparison, connection: duckdb.DuckDBPyConnection) -> Selection:
    """The comparison's runs among those that the connection's `runs` hold."""
    selection = Selection()
    for run in database.rows(connection, sql.load("comparison_runs")):
        if not comparison.takes(run["variant"], run["rate"]):
            continue
        if pattern := comparison.excluding(run["source"]):
            selection.left_out.append(run | {"pattern": pattern})
        elif run["excluded"]:
            selection.excluded.append(run)
        else:
            selection.counting.append(run)
    selection.refusals.extend(_refusals(comparison, selection.counting))
    return selection


def _refusals(comparison: Comparison, runs: Sequence[_Row]) -> Iterator[str]:
    """Why such runs are not compared: what was measured in another way, or elsewhere, is never pooled unasked."""
    for column, what, allowance in (("host", "hosts", "hosts"), ("load_model", "load models", "load_models")):
        found = sorted({str(run[column]) for run in runs})
        if len(found) > 1 and allowance not in comparison.allow:
            yield (
                f"its runs are of different {what} ({', '.join(found)}), which are never pooled unasked. Name "
                f"campaigns of one alone, or add `allow: [{allowance}]` to {comparison.id} in config/comparisons.yaml"
            )
    tools = sorted({str(run["generator"]) for run in runs})
    if "generators" not in comparison.allow and len(set(map(load_generators.meaning, tools))) > 1:
        yield (
            f"its runs are of different load generators ({', '.join(tools)}), whose latencies do not mean the same. "
            f"Name campaigns of one alone, or add `allow: [generators]` to {comparison.id} in config/comparisons.yaml, "
            "and each stands beside the others with what its latencies mean"
        )


class _Comparing:
    def __init__(
        self,
        comparison: Comparison,
        *,
        counting: Sequence[_Row],
        excluded: Sequence[_Row],
        connection: duckdb.DuckDBPyConnection,
        tables: Path,
        settings: Settings,
    ) -> None:
        self.comparison = comparison
        self.excluded = excluded
        # One per row: the runs of a variant at a load that were measured in the same way, with its number.
        self.series = [[run | {"series": n} for run in runs] for n, runs in enumerate(grouped(counting))]
        self.replicates: dict[int, Replicates] = {}  # by that number, of those with requests; filled by `rows`
        self.connection = connection
        self.tables = tables
        self.cache = Cache(tables, layout.comparison_cache_file(tables, comparison.id))
        self.source = Source(connection, tables, self.cache)
        self.confidence = settings.confidence
        self.files: dict[tuple[Any, ...], list[str]] = {}
        for row in database.rows(connection, sql.load("comparison_files")):
            key = row["host"], row["timestamp"], row["variant"], row["rate"]
            self.files.setdefault(key, []).append(row["requests_file"])
        self.cells = {
            (cell["host"], cell["timestamp"], cell["variant"], cell["rate"]): cell
            for cell in connection.table("cells").filter("stream = 'main'").to_arrow_table().to_pylist()
        }
        self.drawn: dict[tuple[Any, ...], list[_Row]] = {}
        for row in connection.sql("FROM replicates").to_arrow_table().to_pylist():
            key = row["host"], row["timestamp"], row["variant"], row["rate"]
            self.drawn.setdefault(key, []).append(row)

    def rows(self) -> Iterator[_Row]:
        """One row per load, variant and way of measuring with any run that counts."""
        reported = {row.pop("series"): row for row in self._reported()}
        for number, runs in enumerate(self.series):
            yield self._described(runs) | reported.get(number, {}) | self._pooled(runs)

    def _described(self, runs: Sequence[_Row]) -> _Row:
        rate, variant = runs[0]["rate"], runs[0]["variant"]
        place = rate, variant, way(runs[0])
        same = (run for run in self.excluded if (run["rate"], run["variant"], way(run)) == place)
        return {
            "comparison": self.comparison.id,
            "app": self.comparison.app,
            "host": _joined(run["host"] for run in runs),
            "timestamps": sorted({run["timestamp"] for run in runs}),
            "variant": variant,
            "rate": rate,
            "load_model": _joined(run["load_model"] for run in runs),
            "generator": _joined(run["generator"] for run in runs),
            "evidence": _joined(run["evidence"] for run in runs),
            "resolution_ns": max((run["resolution_ns"] for run in runs if run["resolution_ns"]), default=None),
            "n_runs": len(runs),
            "n_excluded": sum(1 for _ in same),
        }

    # --- vegeta-summaries ---------------------------------------------------------------------------------------------

    def _reported(self) -> list[_Row]:
        keys = ("app", "host", "timestamp", "variant", "rate", "variant_dir", "run", "series", *_HEEDED)
        counting = [run for runs in self.series for run in runs]
        self.connection.register("counting", pa.table({name: [run[name] for run in counting] for name in keys}))
        self.connection.register("derived", pa.Table.from_pylist(self._derived(), schema.TABLES["summaries"]))
        return database.rows(self.connection, sql.load("comparison_summaries"))

    def _derived(self) -> list[_Row]:
        """What a summary would say of each run that has none, if the comparison allows that."""
        if "evidence" not in self.comparison.allow:
            return []
        unreported = database.rows(self.connection, sql.load("comparison_unreported"))
        found = []
        for _, group in groupby(unreported, key=lambda run: run["series"]):
            runs = list(group)
            if files := self._requests(runs):
                run_requests.select(self.connection, runs)
                found += database.rows(self.connection, sql.load("comparison_derived"), files=self._patterns(files))
        return found

    # --- all-raw-data, and ours ---------------------------------------------------------------------------------------

    def _pooled(self, runs: Sequence[_Row]) -> _Row:
        if found := self._of_cell(runs):
            self.replicates[runs[0]["series"]] = replicates.from_rows(self.drawn[self._places(runs).pop()])
        else:
            found = self._joined([run for run in runs if run["evidence"] == "raw"])
        if not found:
            return {"all_raw_data_n_runs": 0}
        return {name: found[name] for name in _TAKEN if name in found} | {
            f"all_raw_data_{name}": found[name] for name in _ALL_RAW_DATA
        }

    def _of_cell(self, runs: Sequence[_Row]) -> _Row | None:
        """The cell that counts exactly these runs, if there is one."""
        places = self._places(runs)
        place = places.pop()
        cell = None if places else self.cells.get(place)
        # A cell counts every run that is not excluded and has requests; as many of them are the same.
        return cell if cell and cell["n_runs"] == sum(run["evidence"] == "raw" for run in runs) else None

    @staticmethod
    def _places(runs: Sequence[_Row]) -> set[tuple[Any, ...]]:
        """The cells that runs are of."""
        return {(run["host"], run["timestamp"], run["variant"], run["rate"]) for run in runs}

    def _joined(self, runs: Sequence[_Row]) -> _Row | None:
        """The figures of runs that no cell counts alone."""
        included = replicates.ordered(runs)
        if not (files := self._requests(included)):
            return None
        columns = ("app", "host", "timestamp", "rate", "variant", "variant_dir", "run", *_HEEDED)
        depends_on = replicates.CELL_CODE, [tuple(run[name] for name in columns) for run in included], self.confidence
        compute = partial(replicates.cells, self.source, files, included, self.confidence, MAIN_STREAM)
        rows = self.cache.rows(depends_on, files, compute)
        if not rows:
            return None
        self.replicates[runs[0]["series"]] = replicates.from_text(rows[0].pop("replicates"))
        return rows[0]

    # --- what charts show of it ---------------------------------------------------------------------------------------

    def pictured(self) -> dict[str, list[_Row]]:
        """Rows of the tables `pictured.POOLED`; a series whose runs are all that one cell counts has that cell's."""
        found: dict[str, list[_Row]] = {table: [] for table in distributions.POOLED}
        known = {table: self._pictured_cells(table) for table in distributions.POOLED}
        for runs in self.series:
            raw = [run for run in runs if run["evidence"] == "raw"]
            if self._of_cell(runs):
                place = self._places(runs).pop()
                rows = {
                    table: [row | {"comparison": self.comparison.id} for row in known[table].get(place, ())]
                    for table in known
                }
            elif files := self._requests(raw):
                rows = distributions.of_series(self.source, self.comparison.id, files, replicates.ordered(raw))
            else:
                continue
            for table in found:
                found[table] += rows[table]
        return found

    def _pictured_cells(self, table: str) -> dict[tuple[Any, ...], list[_Row]]:
        found: dict[tuple[Any, ...], list[_Row]] = {}
        for row in self.connection.table(table).filter("comparison IS NULL").to_arrow_table().to_pylist():
            found.setdefault((row["host"], row["timestamps"][0], row["variant"], row["rate"]), []).append(row)
        return found

    def _requests(self, runs: Sequence[_Row]) -> list[str]:
        return sorted({file for place in self._places(runs) for file in self.files.get(place, ())})

    def _patterns(self, files: Sequence[str]) -> list[str]:
        return [layout.pattern(self.tables / file) for file in files]


def _joined(values: Any) -> str:
    return ", ".join(sorted({str(value) for value in values}))


# --- Fitted lines: table fits -----------------------------------------------------------------------------------------


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


def fit_rows(comparison: Comparison, fitted: Sequence[Fitted]) -> Iterator[_Row]:
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
