"""Tables of some campaigns -> the rows of one comparison and its fitted lines (`fits`). Reads no raw file.

Two averages are those that older publications of this archive used: ``vegeta-summaries`` (over runs, of the figures
that the tool reported, even of runs with single requests) and ``all-raw-data`` (over all requests). The other columns
are computed as for `cells`. Where a row's runs are exactly those of one cell, its figures are copied from there: only
rows over several cells are computed. Latencies of fits are of requests, and of reports only for runs without requests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.analysis import Row, by_key, conclusions, distributions, replicates, run_requests
from loadstone.analysis.run_requests import Cache, Pool, Source
from loadstone.analysis.scope import Scope, Settings, grouped, joined, run_key, way
from loadstone.archive import MAIN_STREAM, Campaign
from loadstone.config.comparisons import Comparison, Fit
from loadstone.readers import load_generators
from loadstone.stats import Replicates, lines
from loadstone.stats.lines import Line
from loadstone.tables import database, layout, schema

_COLUMNS = schema.TABLES["comparisons"].names
_POOLED = _COLUMNS[_COLUMNS.index("n_requests") :]  # of the pooled requests of its runs, as a cell has them
_RUN = ("app", "host", "timestamp", "variant", "rate", "variant_dir", "run")
_ALL_RAW_DATA = ("n_runs", "mean_ns", "std_ns", "ok_mean_ns", "ok_std_ns")


@dataclass(frozen=True)
class Selection:
    """The runs of a comparison, rows of ``comparison_runs.sql``.

    Its figures are of the `valid` ones; `excluded` are in no statistic; `not_compared` match one of the comparison's
    own patterns (each with its ``pattern``). If there are `refusals`, there are no figures.
    """

    valid: list[Row] = field(default_factory=list)
    excluded: list[Row] = field(default_factory=list)
    not_compared: list[Row] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def used(self) -> list[Row]:
        """The valid runs, unless they are not compared."""
        return [] if self.refusals else self.valid

    @property
    def doubted(self) -> list[Row]:
        """Valid runs whose report contradicts itself or the run's requests, as their ``doubts`` say.

        The method "vegeta-summaries" includes them, since it is the mean of all reports; the page says so.
        """
        return [run for run in self.valid if run["doubts"]]


def compare(
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    tables: Path,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> Selection:
    """Write the comparison's rows of table `comparisons` and all conclusions; returns the runs that they are of.

    `campaigns` are those of its campaigns that are in the tables. Raises LoadstoneError when `tables` can't be written.
    """
    with database.connect(tables, campaigns) as connection:
        selection = select(comparison, connection)
        pooling = _Pooling(comparison, connection, campaigns, tables, settings.confidence)
        series, pooled = pooling.over(selection)
        reported = pooling.reported(series)
        pooling.cache.save()
        fitted = fit_all(comparison, selection.used, connection, settings.confidence)
        rows = {
            "comparisons": [
                _described(comparison, runs, selection.excluded) | reported.get(n, {}) | _columns(found)
                for n, (runs, found) in enumerate(zip(series, pooled, strict=True))
            ],
            "fits": fit_rows(comparison, fitted),
        }
        rows |= {
            table: [row for found in pooled if found for row in found.charts[table]] for table in distributions.POOLED
        }
        layout.write_tables(tables, comparison.id, rows)
        conclusions.write(tables, _scope(pooling, campaigns, settings, selection, zip(series, pooled, strict=True)))
    return selection


def scope_of_comparison(
    connection: duckdb.DuckDBPyConnection,
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    tables: Path,
    settings: Settings,
) -> Scope:
    """What conclusions about a comparison are drawn from, as `compare` has it; `connection` has a view per table."""
    selection = select(comparison, connection)
    pooling = _Pooling(comparison, connection, campaigns, tables, settings.confidence)
    return _scope(pooling, campaigns, settings, selection, zip(*pooling.over(selection), strict=True))


def _scope(
    pooling: "_Pooling",
    campaigns: Sequence[Campaign],
    settings: Settings,
    selection: Selection,
    pooled: Iterable[tuple[Sequence[Row], "_Pooled | None"]],
) -> Scope:
    return conclusions.scope_of(
        pooling.connection,
        pooling.comparison,
        campaigns,
        settings,
        series=[(runs, found.replicates if found else None) for runs, found in pooled],
        excluded=[*selection.excluded, *selection.not_compared],
    )


def select(comparison: Comparison, connection: duckdb.DuckDBPyConnection) -> Selection:
    """The comparison's runs among those that the connection's `runs` hold."""
    selection = Selection()
    for run in database.rows(connection, sql.load("comparison_runs")):
        if not comparison.takes(run["variant"], run["rate"]):
            continue
        if "protocols" in comparison.allow:
            run["protocol"] = None
        if pattern := comparison.excluding(run["source"]):
            selection.not_compared.append(run | {"pattern": pattern})
        elif run["excluded"]:
            selection.excluded.append(run)
        else:
            selection.valid.append(run)
    selection.refusals.extend(_refusals(comparison, selection.valid))
    return selection


def _refusals(comparison: Comparison, runs: Sequence[Row]) -> Iterator[str]:
    """Why such runs are not compared: those of different hosts or ways of measuring are only pooled on request."""
    for column, what, allowance in (("host", "hosts", "hosts"), ("load_model", "load models", "load_models")):
        found = sorted({str(run[column]) for run in runs})
        if len(found) > 1 and allowance not in comparison.allow:
            yield (
                f"its runs are of different {what} ({', '.join(found)}), which are never pooled by "
                f"default. List campaigns of only one, or add `allow: [{allowance}]` to {comparison.id} in "
                "config/comparisons.yaml"
            )
    protocols = sorted({run["protocol"] for run in runs if run["protocol"]})
    if len(protocols) > 1:  # `select` drops them where they are allowed
        yield (
            f"its runs were sent over different protocols ({', '.join(protocols)}), which are never compared by "
            f"default. List variants of only one, or add `allow: [protocols]` to {comparison.id} in "
            "config/comparisons.yaml"
        )
    tools = sorted({str(run["generator"]) for run in runs})
    if "generators" not in comparison.allow and len(set(map(load_generators.meaning, tools))) > 1:
        yield (
            f"its runs are of different load generators ({', '.join(tools)}), whose latencies have different meanings. "
            f"List campaigns of only one, or add `allow: [generators]` to {comparison.id} in config/comparisons.yaml, "
            "and each is shown with the meaning of its latencies"
        )


def _described(comparison: Comparison, runs: Sequence[Row], excluded: Sequence[Row]) -> Row:
    """The columns that identify a row of `comparisons`."""
    rate, variant = runs[0]["rate"], runs[0]["variant"]
    place = rate, variant, way(runs[0])
    return {
        "comparison": comparison.id,
        "app": comparison.app,
        "timestamps": sorted({run["timestamp"] for run in runs}),
        "variant": variant,
        "rate": rate,
        **{name: joined(runs, name) for name in ("host", "load_model", "generator", "evidence")},
        "resolution_ns": max((run["resolution_ns"] for run in runs if run["resolution_ns"]), default=None),
        "n_runs": len(runs),
        "n_excluded": sum((run["rate"], run["variant"], way(run)) == place for run in excluded),
    }


@dataclass(frozen=True)
class _Pooled:
    """The requests of a series: figures as a row of `cells`, replicates, and rows of `distributions.POOLED`."""

    figures: Row
    replicates: Replicates
    charts: Mapping[str, list[Row]]


def _columns(found: _Pooled | None) -> Row:
    """The columns of `comparisons` computed from requests: of the method all-raw-data, and as in `cells`."""
    if not found:
        return {"all_raw_data_n_runs": 0}
    figures = found.figures
    return {name: figures[name] for name in _POOLED if name in figures} | {
        f"all_raw_data_{name}": figures[name] for name in _ALL_RAW_DATA
    }


class _Pooling:
    """The figures of a comparison's series: from the tables of its campaigns, or computed over several cells."""

    def __init__(
        self,
        comparison: Comparison,
        connection: duckdb.DuckDBPyConnection,
        campaigns: Sequence[Campaign],
        tables: Path,
        confidence: float,
    ) -> None:
        for table in ("facts", "replicates"):
            database.add_view(connection, tables, table, campaigns)
        self.comparison, self.connection, self._confidence = comparison, connection, confidence
        self.cache = Cache(tables, layout.cache_file(tables, comparison.id))
        self._source = Source(connection, tables, self.cache)
        self._files = by_key(database.rows(connection, sql.load("comparison_files")), _cell)
        self._cells = by_key(database.rows(connection, "FROM cells WHERE stream = 'main'"), _cell)
        self._replicates = by_key(database.rows(connection, "FROM replicates"), _cell)
        self._charts = {
            table: by_key(connection.table(table).filter("comparison IS NULL").to_arrow_table().to_pylist(), _cell)
            for table in distributions.POOLED
        }

    def over(self, selection: Selection) -> tuple[list[list[Row]], list[_Pooled | None]]:
        """For each row its runs, of one variant at one rate and measured in one way, and their figures.

        ``series`` of a run is the number of the row.
        """
        series = [[run | {"series": n} for run in runs] for n, runs in enumerate(grouped(selection.used))]
        pooled = [self._of_cell(runs) for runs in series]
        unknown = {n: self._pool(series[n]) for n, found in enumerate(pooled) if not found}
        with_requests = {n: pool for n, pool in unknown.items() if pool.files}
        for n, found in zip(with_requests, self._computed(list(with_requests.values())), strict=True):
            pooled[n] = found
        return series, pooled

    def _of_cell(self, runs: Sequence[Row]) -> _Pooled | None:
        """The figures of a series from the tables of the one cell that has the same runs, if there is one."""
        first, *others = {_cell(run) for run in runs}
        (cell,) = self._cells.get(first, [None]) if not others else [None]
        # A cell has every run that has measured requests and is not excluded: if the numbers agree, so do the runs.
        raw = sum(run["evidence"] == "raw" and bool(run["requests"]) for run in runs)
        if not cell or cell["n_runs"] != raw or first not in self._replicates:
            return None
        charts = {
            table: [row | {"comparison": self.comparison.id} for row in known.get(first, ())]
            for table, known in self._charts.items()
        }
        return _Pooled(cell, replicates.from_rows(self._replicates[first]), charts)

    def _pool(self, runs: Sequence[Row]) -> Pool:
        raw = replicates.ordered([run for run in runs if run["evidence"] == "raw"])
        return Pool(self._files_of(raw), raw)

    def _computed(self, pools: Sequence[Pool]) -> Iterator[_Pooled | None]:
        """The figures of each of `pools`; None for one without measured requests."""
        charts = distributions.of_pools(self._source, self.comparison.id, pools)
        for rows, own in zip(replicates.cells(self._source, pools, self._confidence, MAIN_STREAM), charts, strict=True):
            if not rows:
                yield None
                continue
            found = replicates.from_text(rows[0].pop("replicates"))
            yield _Pooled(rows[0], found, own)

    def reported(self, series: Sequence[Sequence[Row]]) -> dict[int, Row]:
        """The columns of vegeta-summaries, by the number of a series."""
        connection = self._source.connection
        valid = [run for runs in series for run in runs]
        columns = (*_RUN, "series", *replicates.RUN_COLUMNS)
        connection.register("valid_runs", pa.table({name: [run[name] for run in valid] for name in columns}))
        connection.register("derived", pa.Table.from_pylist(self._derived(), schema.TABLES["summaries"]))
        return {row.pop("series"): row for row in database.rows(connection, sql.load("comparison_summaries"))}

    def _derived(self) -> list[Row]:
        """Summaries computed from the requests of runs that have none, if the comparison allows that."""
        if "evidence" not in self.comparison.allow:
            return []
        connection = self._source.connection
        unreported = database.rows(connection, sql.load("comparison_unreported"))
        found = []
        for _, group in groupby(unreported, key=lambda run: run["series"]):
            runs = list(group)
            if files := self._files_of(runs):
                run_requests.select(connection, [Pool(files, runs)])
                patterns = [layout.pattern(self._source.tables / file) for file in files]
                found += database.rows(connection, sql.load("comparison_derived"), files=patterns)
        return found

    def _files_of(self, runs: Sequence[Row]) -> list[str]:
        return sorted({row["requests_file"] for run in runs for row in self._files.get(_cell(run), ())})


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Identifies the cell of a row of any table."""
    return row["host"], row.get("timestamp") or row["timestamps"][0], row["variant"], row["rate"]


# --- Fitted lines: table fits -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One run: its `x`, its figure `y` in the fit's unit, and the evidence for that."""

    x: float
    y: float
    variant: str
    rate: float
    run: int
    evidence: str


@dataclass(frozen=True)
class Fitted:
    """A fit with its points. Without a `line` there is a `problem`; `n_left_out` runs have no x or no y."""

    fit: Fit
    points: Sequence[Point]
    n_left_out: int
    line: Line | None
    problem: str | None


def fit_all(
    comparison: Comparison, valid: Sequence[Row], connection: duckdb.DuckDBPyConnection, confidence: float
) -> list[Fitted]:
    """All fits of the comparison over its `valid` runs; `confidence` is that of intervals."""
    return [_fitted(fit, valid, connection, confidence) for fit in comparison.fits]


def fit_rows(comparison: Comparison, fitted: Iterable[Fitted]) -> list[Row]:
    """Rows of table `fits`."""
    rows = []
    for each in fitted:
        found = asdict(each.line) if each.line else {}
        xs = [point.x for point in each.points]
        row = {
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
        rows.append(found | row)
    return rows


def _fitted(fit: Fit, valid: Sequence[Row], connection: duckdb.DuckDBPyConnection, confidence: float) -> Fitted:
    if not valid:
        return Fitted(fit, [], 0, None, "there is no valid run")
    connection.register("valid_runs", pa.table({name: [run[name] for run in valid] for name in _RUN}))
    by_run = {run_key(run): run for run in valid}
    scale = 1e-6 if fit.unit == "ms" else 1.0
    points, used = [], []
    for row in database.rows(connection, sql.load("comparison_points"), of=fit.of, name=fit.name or ""):
        run = by_run[run_key(row)]
        if (x := _x(fit, run)) is not None:
            used.append(run)
            points.append(Point(x, row["value"] * scale, row["variant"], row["rate"], row["run"], row["evidence"]))
    line, problem = None, _problem(fit, points, used)
    if problem is None:
        line = lines.line([point.x for point in points], [point.y for point in points], confidence)
    return Fitted(fit, points, len(valid) - len(points), line, problem)


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
    """Why there is no line, which is never over runs measured in different ways."""
    models = sorted({str(run["load_model"]) for run in used})
    tools = sorted({str(run["generator"]) for run in used})
    if len(models) > 1:
        return f"its runs are of different load models ({', '.join(models)}), which never share a statistic"
    if fit.unit == "ms" and len({load_generators.meaning(tool) for tool in tools}) > 1:
        return f"its runs are of different load generators ({', '.join(tools)}), whose latencies are not comparable"
    if len(points) < lines.LEAST_POINTS:
        have = "1 run has" if len(points) == 1 else f"{len(points)} runs have"
        return f"{have} both a number for {fit.x} and this figure; at least {lines.LEAST_POINTS} are needed"
    if len({point.x for point in points}) == 1:
        return f"all runs have the same {fit.x}"
    return None
