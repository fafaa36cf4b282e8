"""Tables of one campaign -> its `runs`, judged, and its `cells`, computed. Reads no raw file."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from loadstone import sql, stats
from loadstone.archive import MAIN_STREAM, Campaign
from loadstone.tables import database, layout, schema
from loadstone.tables.exclusion import judge

_Row = dict[str, Any]


def analyse_campaign(
    campaign: Campaign,
    tables: Path,
    tags: Sequence[Mapping[str, Any]] = (),
    excluding: Collection[str] = (),
) -> None:
    """Write `runs` and `cells` of one campaign from what `convert_campaign` wrote.

    `tags` are the catalogue's rows for this campaign with patterns for ``variant``, ``rate`` and ``run``, a ``tag`` and
    a ``reason``; a run with a tag in `excluding` is left out. One cell at a time, so that memory follows the largest
    cell. Raises LoadstoneError when `tables` can't be written.
    """
    with database.open_memory() as connection:
        database.add_view(connection, tables, "facts", schema.FACTS, [campaign])
        database.add_view(connection, tables, "summaries", schema.SUMMARIES, [campaign])
        facts = _rows(connection, "SELECT * FROM facts ORDER BY rate, variant, variant_dir, run")
        runs = _judged(connection, tables, facts, tags, excluding)
        cells = [cell for group in _groups(runs) for cell in _cells(connection, tables, group)]
    for table, rows, columns in (("runs", runs, schema.RUNS), ("cells", cells, schema.CELLS)):
        path = layout.partition(tables, table, campaign) / layout.PART
        layout.write_rows(tables, path, rows, columns, keep_empty=True)  # both are what the workflow waits for


def _rows(connection: duckdb.DuckDBPyConnection, query: str, **values: Any) -> list[_Row]:
    rows: list[_Row] = connection.sql(query, params=values).to_arrow_table().to_pylist()
    return rows


# --- runs ------------------------------------------------------------------------------------------------------------


def _judged(
    connection: duckdb.DuckDBPyConnection,
    tables: Path,
    facts: Sequence[_Row],
    tags: Sequence[Mapping[str, Any]],
    excluding: Collection[str],
) -> list[_Row]:
    measured: dict[tuple[str, int], _Row] = {}
    for file in sorted({fact["requests_file"] for fact in facts if fact["requests_file"]}):
        for row in _rows(connection, sql.load("runs"), files=[layout.pattern(tables / file)]):
            measured[file, row["run"]] = row
    reported = {
        (row["variant_dir"], row["rate"], row["run"]): row
        for row in _rows(connection, sql.load("main_summaries"), stream=MAIN_STREAM)
    }
    named = Counter((fact["variant_dir"], fact["rate"], fact["run"]) for fact in facts)
    runs = []
    for fact in facts:
        key = fact["variant_dir"], fact["rate"], fact["run"]
        found = measured.get((fact["requests_file"] or "", fact["run"]), {})
        counted = reported.get(key, {}) if fact["evidence"] == "summary" else found
        verdict = judge(
            fact, counted.get("requests"), found.get("repeated", 0), tags, excluding, ambiguous=named[key] > 1
        )
        started_at = counted.get("started_at")
        runs.append(
            fact
            | {
                "started_at": started_at and (started_at if started_at.tzinfo else started_at.replace(tzinfo=UTC)),
                "requests": counted.get("requests"),
                "complete": verdict.complete,
                "send_lag_p99_ns": found.get("send_lag_p99_ns") if fact["load_model"] == "open" else None,
                "tags": verdict.tags,
                "excluded": verdict.excluded,
                "exclusion_reason": "; ".join(verdict.reasons) or None,
            }
        )
    return runs


# --- cells -----------------------------------------------------------------------------------------------------------


def _groups(runs: Sequence[_Row]) -> Iterator[list[_Row]]:
    """The runs of one rate and variant; two folders can mean the same."""
    for _, group in groupby(runs, key=lambda run: (run["rate"], run["variant"])):
        yield list(group)


def _cells(connection: duckdb.DuckDBPyConnection, tables: Path, runs: Sequence[_Row]) -> Iterator[_Row]:
    """One row per stream."""
    included = [run for run in runs if not run["excluded"] and run["requests_file"]]
    if not included:
        return
    files = sorted({layout.pattern(tables / run["requests_file"]) for run in included})
    keys = {name: [run[name] for run in included] for name in ("variant_dir", "run")}
    connection.register("included", pa.table(keys | {"series": range(len(included))}))
    key = {name: runs[0][name] for name, _ in schema.CELL_KEY}
    for cell in _rows(connection, sql.load("cells"), files=files):
        yield key | cell | {"n_excluded": sum(run["excluded"] for run in runs)} | _support(connection, files, key, cell)


def _support(connection: duckdb.DuckDBPyConnection, files: Sequence[str], key: _Row, cell: _Row) -> _Row:
    """Intervals of a cell's figures, and which percentiles it has requests enough for."""
    found: _Row = {
        f"{name}_estimable": stats.estimable(cell["n_requests"], probability)
        for name, probability in schema.PERCENTILES.items()
    }
    if cell["n_runs"] > 1:
        values = {"files": files, "stream": cell["stream"]}
        series, latencies_ns = connection.execute(sql.load("cell_latencies"), values).fetchnumpy().values()
        starts = np.flatnonzero(np.diff(series)) + 1
        supported = {name: q for name, q in schema.PERCENTILES.items() if found[f"{name}_estimable"]}
        seed = stats.seed(*key.values(), cell["stream"])
        for name, interval in stats.intervals(np.split(latencies_ns, starts), supported, seed).items():
            found[f"{name}_low_ns"], found[f"{name}_high_ns"] = interval
    return found
