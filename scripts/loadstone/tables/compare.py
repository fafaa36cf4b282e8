"""Tables of some campaigns -> the rows of one comparison. Reads no raw file.

Two averages are those of the archive's former owners: ``vegeta-summaries`` (over runs, of what the tool reported of
each) and ``all-raw-data`` (over all requests); the other columns are computed as for `cells`. A row whose runs are all
that one cell counts takes these from there, so that only cells joined from several campaigns are computed anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from loadstone import sql, stats
from loadstone.archive import Campaign
from loadstone.comparisons import Comparison
from loadstone.tables import database, layout, schema

_Row = dict[str, Any]

_RUN = ("host", "timestamp", "variant_dir", "run")
_TAKEN = [column.name for column in schema.POOLED]
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


def compare(comparison: Comparison, campaigns: Sequence[Campaign], tables: Path) -> Selection:
    """Write the comparison's rows of table `comparisons` and say what they rest on.

    `campaigns` are those of its campaigns that are in the tables. Raises LoadstoneError when `tables` can't be written.
    """
    with database.connect(tables, campaigns) as connection:
        database.add_view(connection, tables, "facts", schema.FACTS, campaigns)
        selection = select(comparison, connection)
        rows = [] if selection.refusals else list(_Comparing(comparison, selection, connection, tables).rows())
    layout.write_rows(tables, layout.comparison_file(tables, comparison.id), rows, schema.COMPARISONS, keep_empty=True)
    return selection


def select(comparison: Comparison, connection: duckdb.DuckDBPyConnection) -> Selection:
    """The comparison's runs among those that the connection's `runs` hold."""
    selection = Selection()
    for run in _rows(connection, "comparison_runs"):
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


def _rows(connection: duckdb.DuckDBPyConnection, query: str, **values: Any) -> list[_Row]:
    rows: list[_Row] = connection.sql(sql.load(query), params=values).to_arrow_table().to_pylist()
    return rows


class _Comparing:
    def __init__(
        self, comparison: Comparison, selection: Selection, connection: duckdb.DuckDBPyConnection, tables: Path
    ) -> None:
        self.comparison = comparison
        self.selection = selection
        self.connection = connection
        self.files: dict[tuple[Any, ...], list[str]] = {}
        for row in _rows(connection, "comparison_files"):
            key = row["host"], row["timestamp"], row["variant"], row["rate"]
            self.files.setdefault(key, []).append(layout.pattern(tables / row["requests_file"]))
        self.cells = {
            (cell["host"], cell["timestamp"], cell["variant"], cell["rate"]): cell
            for cell in _rows(connection, "comparison_cells")
        }

    def rows(self) -> Iterator[_Row]:
        """One row per load and variant with any run that counts."""
        reported = {(row["variant"], row["rate"]): row for row in self._reported()}
        for (rate, variant), group in groupby(self.selection.counting, key=lambda run: (run["rate"], run["variant"])):
            runs = list(group)
            yield self._described(variant, rate, runs) | reported.get((variant, rate), {}) | self._pooled(runs)

    def _described(self, variant: str, rate: float, runs: Sequence[_Row]) -> _Row:
        same = (run for run in self.selection.excluded if (run["variant"], run["rate"]) == (variant, rate))
        return {
            "comparison": self.comparison.id,
            "app": self.comparison.app,
            "host": _joined(run["host"] for run in runs),
            "timestamps": sorted({run["timestamp"] for run in runs}),
            "variant": variant,
            "rate": rate,
            "load_model": _joined(run["load_model"] for run in runs),
            "evidence": _joined(run["evidence"] for run in runs),
            "n_runs": len(runs),
            "n_excluded": sum(1 for _ in same),
        }

    # --- vegeta-summaries ---------------------------------------------------------------------------------------------

    def _reported(self) -> list[_Row]:
        keys = ("app", "host", "timestamp", "variant", "rate", "variant_dir", "run")
        self._register("counting", self.selection.counting, keys)
        self.connection.register("derived", pa.Table.from_pylist(self._derived(), schema.SUMMARIES))
        return _rows(self.connection, "comparison_summaries")

    def _derived(self) -> list[_Row]:
        """What a summary would say of each run that has none, if the comparison allows that."""
        if "evidence" not in self.comparison.allow:
            return []
        unreported = _rows(self.connection, "comparison_unreported")
        found = []
        for _, group in groupby(unreported, key=lambda run: (run["rate"], run["variant"])):
            runs = list(group)
            if files := self._requests(runs):
                self._register("unreported", runs, _RUN)
                found += _rows(self.connection, "comparison_derived", files=files)
        return found

    # --- all-raw-data, and ours ---------------------------------------------------------------------------------------

    def _pooled(self, runs: Sequence[_Row]) -> _Row:
        found = self._cell_of(runs) or self._computed([run for run in runs if run["evidence"] == "raw"])
        if not found:
            return {"all_raw_data_n_runs": 0}
        return {name: found[name] for name in _TAKEN if name in found} | {
            f"all_raw_data_{name}": found[name] for name in _ALL_RAW_DATA
        }

    def _cell_of(self, runs: Sequence[_Row]) -> _Row | None:
        """The cell that counts exactly these runs, if there is one."""
        places = {(run["host"], run["timestamp"], run["variant"], run["rate"]) for run in runs}
        cell = self.cells.get(places.pop()) if len(places) == 1 else None
        # A cell counts every run that is not excluded and has requests; as many of them are the same.
        return cell if cell and cell["n_runs"] == sum(run["evidence"] == "raw" for run in runs) else None

    def _computed(self, runs: Sequence[_Row]) -> _Row | None:
        if not (files := self._requests(runs)):
            return None
        self._register("counting", runs, _RUN)
        if not (rows := _rows(self.connection, "comparison_pooled", files=files)):
            return None
        return rows[0] | self._support(rows[0], files, runs[0])

    def _support(self, row: _Row, files: Sequence[str], run: _Row) -> _Row:
        """Which percentiles there are requests enough for, and their intervals where there is more than one run."""
        found: _Row = {
            f"{name}_estimable": stats.estimable(row["n_requests"], probability)
            for name, probability in schema.PERCENTILES.items()
        }
        if row["n_runs"] > 1:
            query = sql.load("comparison_latencies")
            series, latencies_ns = self.connection.execute(query, {"files": files}).fetchnumpy().values()
            by_run = np.split(latencies_ns, np.flatnonzero(np.diff(series)) + 1)
            supported = {name: q for name, q in schema.PERCENTILES.items() if found[f"{name}_estimable"]}
            seed = stats.seed(self.comparison.id, run["variant"], run["rate"])
            for name, interval in stats.intervals(by_run, supported, seed).items():
                found[f"{name}_low_ns"], found[f"{name}_high_ns"] = interval
        return found

    def _requests(self, runs: Sequence[_Row]) -> list[str]:
        places = {(run["host"], run["timestamp"], run["variant"], run["rate"]) for run in runs}
        return sorted({file for place in places for file in self.files.get(place, ())})

    def _register(self, name: str, runs: Sequence[_Row], columns: Sequence[str]) -> None:
        self.connection.register(name, pa.table({column: [run[column] for run in runs] for column in columns}))


def _joined(values: Any) -> str:
    return ", ".join(sorted({str(value) for value in values}))
