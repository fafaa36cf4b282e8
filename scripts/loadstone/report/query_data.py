"""Tables as the reader's browser gets them: Arrow in ``ask/<table>.js``, the same bytes for the same tables.

Times come without a zone and are UTC: DuckDB's core, which is all a browser has, can't reckon with those that have one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone import sql
from loadstone.archive import Campaign
from loadstone.report.output import as_json, write_text
from loadstone.report.query_engine import pieces
from loadstone.tables import layout
from loadstone.tables.database import add_view, open_memory
from loadstone.tables.schema import TABLES

# Every table that may be asked in the browser, with what a row of it is. Those that hold requests, samples, spans or
# figures printed by tools are too large to be handed out whole.
ASKED: Mapping[str, str] = {
    "runs": "run: what it is, how complete, whether and why it is left out, problems",
    "cells": "variant at a rate in a campaign: means and spreads, percentiles with intervals, error fractions",
    "cells_all": "the same, with the runs put back that are left out",
    "comparisons": "variant at a rate in a comparison",
    "effects": "variant at a rate beside its baseline: shift and ratio with intervals, verdict",
    "knees": "variant: the rate at which it saturates",
    "knee_shares": "variant at a share of its own knee: latency there, beside the baseline's",
    "layers": "variant at a rate: what it adds to the one below it",
    "interactions": "two layers at a rate: whether together they add what each adds alone",
    "run_shapes": "run: whether it was flat, warming up, drifting, changing level, uneven",
    "sending": "run: how late the load generator sent",
    "senders": "one of several load generators in a run: how late it was, its clock",
    "time_bins": "time within the runs of a variant at a rate: mean and percentiles of the requests sent then",
    "error_causes": "run and cause of errors: side, code, text, count",
    "history": "variant at a rate and statistic in each campaign: value, interval, level",
    "claims": "thing that weakens a comparison",
    "fits": "line fitted over the runs of a comparison: slope and intercept with intervals of the column confidence",
    "summaries": "report of a run by its load generator",
    "planned": "planned run: its position, whether it was collected",
    "failures": "try that gave no result: when, in which phase, why",
    "suggestions": "suggested tag: what looks wrong, and why",
    "problems": "thing in the archive that could not be understood",
    "incidents": "thing that happened to a cluster's pods during an attack",
    "generators": "load generator: what its latency means, by which clock, how finely",
}
MOST_RUNS = 50_000  # of the newest campaigns


@dataclass(frozen=True)
class Published:
    """One table of the site: its file relative to it, and how many bytes that has."""

    name: str
    about: str
    columns: list[tuple[str, str]]
    rows: int
    file: str
    size: int


@dataclass(frozen=True)
class Held:
    """The campaigns that the published tables are about: the newest, as many as have room; and how many there are."""

    campaigns: list[Campaign]
    of: int


def held(tables: Path, campaigns: Sequence[Campaign]) -> Held:
    """The newest of `campaigns` that together have at most `MOST_RUNS` runs, but one at least."""
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    chosen: list[Campaign] = []
    runs = 0
    for campaign in newest_first:
        runs += _runs(tables, campaign)
        if chosen and runs > MOST_RUNS:
            break
        chosen.append(campaign)
    return Held(chosen, len(newest_first))


def connect(tables: Path, campaigns: Sequence[Campaign]) -> duckdb.DuckDBPyConnection:
    """The tables that may be asked, as the browser has them, in memory; `campaigns` as `held` chose them."""
    connection = open_memory()
    with open_memory() as source:  # one for all: opening one takes longer than reading a small table
        for name in (name for name in ASKED if name in TABLES):
            add_view(source, tables, name, TABLES[name], campaigns)
            rows = source.sql(sql.load("table_rows"), params={"name": name}).to_arrow_table()
            connection.from_arrow(_without_zones(rows)).create(name)
    return connection


def write_tables(connection: duckdb.DuckDBPyConnection, reports: Path) -> list[Published]:
    """Write every table of `connect` into the site; files of tables that are no longer published are removed."""
    published = [_write(connection, name, reports) for name in ASKED if name in TABLES]
    wanted = {reports / table.file for table in published}
    for file in (reports / "ask").glob("*.js"):
        if file not in wanted and file.read_text("utf-8", "replace").startswith("loadstone.receive("):
            file.unlink()
    return published


def _write(connection: duckdb.DuckDBPyConnection, name: str, reports: Path) -> Published:
    rows = connection.table(name).to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    path = reports / "ask" / f"{name}.js"
    calls = (
        f"loadstone.receive({as_json(name)},{number},{as_json(piece)});\n"
        for number, piece in enumerate(pieces(sink.getvalue().to_pybytes()))
    )
    write_text(path, "".join(calls))
    columns = [(row[0], row[1]) for row in connection.execute(sql.load("table_columns"), {"name": name}).fetchall()]
    return Published(name, ASKED[name], columns, rows.num_rows, f"ask/{name}.js", path.stat().st_size)


def _without_zones(rows: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _runs(tables: Path, campaign: Campaign) -> int:
    files = layout.partition(tables, "runs", campaign).glob("*.parquet")
    return sum(pq.read_metadata(file).num_rows for file in files)
