"""Tables of one campaign -> its `runs`, judged, its `cells`, computed, and `suggestions`. Reads no raw file."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from loadstone import sql, stats
from loadstone.archive import MAIN_STREAM, Campaign
from loadstone.tables import database, layout, mismatch, schema
from loadstone.tables.answers import Answers
from loadstone.tables.exclusion import Verdict, judge
from loadstone.tables.mismatch import Known
from loadstone.tables.suggest import Profile, Suggestion, suggest
from loadstone.tables.suggest import row as suggestion_row

_Row = dict[str, Any]

_READ = ("summaries", "planned")
_PROBLEMS = "judged.parquet"  # beside what converting found


@dataclass(frozen=True)
class Judged:
    """One run with its verdict; `profile` is what suggestions are made from."""

    row: _Row
    profile: Profile


@dataclass(frozen=True)
class _Asking:
    """Where answers come from: the database, the tables' folder and what the last analysis computed."""

    connection: duckdb.DuckDBPyConnection
    tables: Path
    answers: Answers

    def measured(self, file: str) -> list[_Row]:
        """`runs.sql` over one cell's requests."""
        query = sql.load("runs")
        patterns = [layout.pattern(self.tables / file)]
        return self.answers.rows(query, [file], lambda: _rows(self.connection, query, files=patterns))


def analyse_campaign(
    campaign: Campaign,
    tables: Path,
    tags: Sequence[Mapping[str, Any]] = (),
    excluding: Collection[str] = (),
    *,
    listed: bool = True,
    completion_file: bool = True,
    folders: Collection[str] | None = None,
) -> list[Suggestion]:
    """Write `runs`, `cells`, `cells_all` and `suggestions` of one campaign from what `convert_campaign` wrote.

    `tags` are the catalogue's rows for this campaign (see `exclusion.matches`), each with a ``tag`` and a ``reason``; a
    run with a tag in `excluding` is left out. What does not fit together becomes rows of `problems`: a campaign that is
    not `listed` in the catalogue, a variant's folder that is not one of `folders` (None: any may be), tags of no run.
    `completion_file` is False where none is to be expected. Returns the suggestions.

    One cell at a time, so that memory follows the largest cell. Raises LoadstoneError when `tables` can't be written.
    """
    known = Known(tags, frozenset(excluding), listed, completion_file, folders)
    with database.open_memory() as connection:
        for table, columns in (("facts", schema.FACTS), *((name, schema.TABLES[name]) for name in _READ)):
            database.add_view(connection, tables, table, columns, [campaign])
        facts = _rows(connection, "SELECT * FROM facts ORDER BY rate, variant, variant_dir, run")
        planned = _rows(connection, "SELECT rate, variant, variant_dir, collected FROM planned")
        asking = _Asking(connection, tables, Answers(tables, campaign))
        links = mismatch.links(campaign.root, facts)
        judged = _judged(asking, facts, known, links, mismatch.copies(facts, links))
        runs = [each.row for each in judged]
        cells: list[_Row] = []
        cells_all: list[_Row] = []
        for group in _groups(runs):
            counting = [run for run in group if not run["excluded"]]
            found = list(_cells(asking, group, counting))
            cells += found
            cells_all += found if len(counting) == len(group) else _cells(asking, group, group)
        asking.answers.save()
    suggestions = suggest((each.profile for each in judged), mismatch.unfinished(campaign, planned, known))
    key = layout.campaign_key(campaign)
    rows = {
        "runs": runs,
        "cells": cells,
        "cells_all": cells_all,
        "suggestions": [suggestion_row(each, key) for each in suggestions],
    }
    for table, content in rows.items():
        path = layout.partition(tables, table, campaign) / layout.PART
        layout.write_rows(tables, path, content, schema.TABLES[table], keep_empty=True)  # the workflow waits for them
    problems = [key | problem for problem in mismatch.problems(campaign, facts, planned, known)]
    path = layout.partition(tables, "problems", campaign) / _PROBLEMS
    layout.write_rows(tables, path, problems, schema.PROBLEMS)
    return suggestions


def _rows(connection: duckdb.DuckDBPyConnection, query: str, **values: Any) -> list[_Row]:
    rows: list[_Row] = connection.sql(query, params=values).to_arrow_table().to_pylist()
    return rows


# --- runs ------------------------------------------------------------------------------------------------------------


def _judged(
    asking: _Asking,
    facts: Sequence[_Row],
    known: Known,
    links: Mapping[str, str],
    copies: Mapping[str, str],
) -> list[Judged]:
    """`links` and `copies` name by the source of a run that of the other whose file or content it has."""
    measured: dict[tuple[str, int], _Row] = {}
    for file in sorted({fact["requests_file"] for fact in facts if fact["requests_file"]}):
        for row in asking.measured(file):
            measured[file, row["run"]] = row
    reported = {
        (row["variant_dir"], row["rate"], row["run"]): row
        for row in _rows(asking.connection, sql.load("main_summaries"), stream=MAIN_STREAM)
    }
    named = Counter((fact["variant_dir"], fact["rate"], fact["run"]) for fact in facts)
    runs = []
    for fact in facts:
        key = fact["variant_dir"], fact["rate"], fact["run"]
        found = measured.get((fact["requests_file"] or "", fact["run"]), {})
        counted = reported.get(key, {}) if fact["evidence"] == "summary" else found
        verdict = judge(
            fact,
            counted.get("requests"),
            found.get("repeated", 0),
            known.tags,
            known.excluding,
            ambiguous=named[key] > 1,
            linked_to=links.get(fact["source"]),
        )
        started_at = counted.get("started_at")
        row = fact | {
            "started_at": started_at and (started_at if started_at.tzinfo else started_at.replace(tzinfo=UTC)),
            "requests": counted.get("requests"),
            "complete": verdict.complete,
            "send_lag_p99_ns": found.get("send_lag_p99_ns") if fact["load_model"] == "open" else None,
            "tags": verdict.tags,
            "excluded": verdict.excluded,
            "exclusion_reason": "; ".join(verdict.reasons) or None,
        }
        runs.append(Judged(row, _profile(fact, counted, verdict, copies.get(fact["source"]))))
    return runs


def _profile(fact: _Row, counted: _Row, verdict: Verdict, copy_of: str | None) -> Profile:
    """`counted` holds what `runs.sql` or the tool's summary says of the run."""
    return Profile(
        variant=fact["variant"],
        rate=fact["rate"],
        run=fact["run"],
        requests=counted.get("requests"),
        expected=fact["expected_requests"],
        sound=not verdict.unfit,
        failed_share=counted.get("failed_share"),
        mean_ns=counted.get("mean_ns"),
        first_half_mean_ns=counted.get("first_half_mean_ns"),
        second_half_mean_ns=counted.get("second_half_mean_ns"),
        tags=verdict.tags,
        trouble=fact["trouble"],
        copy_of=copy_of,
        results_sha256=fact["results_sha256"],
    )


# --- cells -----------------------------------------------------------------------------------------------------------


def _groups(runs: Sequence[_Row]) -> Iterator[list[_Row]]:
    """The runs of one rate and variant; two folders can mean the same."""
    for _, group in groupby(runs, key=lambda run: (run["rate"], run["variant"])):
        yield list(group)


def _cells(asking: _Asking, runs: Sequence[_Row], counting: Sequence[_Row]) -> Iterator[_Row]:
    """One row per stream, over those of a cell's `runs` that are `counting`."""
    included = [run for run in counting if run["requests_file"]]
    if not included:
        return
    key = {name: runs[0][name] for name, _ in schema.CELL_KEY}
    files = {run["requests_file"] for run in included}
    question = _CELL_CODE, key, [(run["variant_dir"], run["run"]) for run in included]
    for cell in asking.answers.rows(question, files, lambda: _computed(asking, key, files, included)):
        yield key | cell | {"n_excluded": sum(run["excluded"] for run in runs)}


# All that the figures of a cell depend on besides its requests.
_STATISTICS = Path(stats.__file__).read_text("utf-8")
_CELL_CODE = (sql.load("cells"), sql.load("cell_latencies"), _STATISTICS, schema.PERCENTILES)


def _computed(asking: _Asking, key: _Row, files: Iterable[str], included: Sequence[_Row]) -> Iterator[_Row]:
    """`cells.sql` over the included runs of one cell, with intervals."""
    connection, patterns = asking.connection, sorted(layout.pattern(asking.tables / file) for file in files)
    keys = {name: [run[name] for run in included] for name in ("variant_dir", "run")}
    connection.register("included", pa.table(keys | {"series": range(len(included))}))
    for cell in _rows(connection, sql.load("cells"), files=patterns):
        yield cell | _support(connection, patterns, key, cell)


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
