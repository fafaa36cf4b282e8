"""Tables of one campaign -> which of its `runs` are excluded, its `cells`, and what follows. Reads no raw file."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from loadstone import sql
from loadstone.analysis import (
    Row,
    by_key,
    campaign_checks,
    conclusions,
    distributions,
    error_causes,
    replicates,
    run_behaviour,
)
from loadstone.analysis.campaign_checks import Declared, Profile, Suggestion, suggest, suggestion_row
from loadstone.analysis.run_behaviour import RunBehaviour
from loadstone.analysis.run_requests import Cache, Pool, Source
from loadstone.analysis.scope import Settings
from loadstone.archive import MAIN_STREAM, Campaign
from loadstone.tables import database, layout, schema
from loadstone.tables.exclusion import CHANGED, SAME_NUMBER, Verdict, Way, judge

_READ = ("summaries", "planned")
_PROBLEMS = "judged.parquet"  # next to those that converting found


def analyse_campaign(
    campaign: Campaign,
    tables: Path,
    tags: Sequence[Mapping[str, Any]] = (),
    excluding: Collection[str] = (),
    *,
    listed: bool = True,
    completion_file: bool = True,
    folders: Collection[str] | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    lag_limit: Mapping[str, float] | None = None,
) -> list[Suggestion]:
    """Write all tables of one campaign that are computed from those of `convert_campaign`, with conclusions.

    `tags` are the catalogue's rows for this campaign (see `exclusion.matches`), each with a ``tag`` and a ``reason``; a
    run with a tag in `excluding` is excluded. Mismatches become rows of `problems`: a campaign that is not `listed` in
    the catalogue, a variant's folder that is not one of `folders` (None: all are allowed), tags that match no run.
    `completion_file` is False where none is expected; `lag_limit` holds fields of `LagLimit`. Returns the suggestions.

    Cells are read a few at a time, so memory depends on the largest. Raises LoadstoneError when `tables` can't be
    written.
    """
    declared = Declared(tags, frozenset(excluding), listed, completion_file, folders)
    with database.open_memory() as connection:
        for table in ("facts", *_READ):
            database.add_view(connection, tables, table, [campaign])
        facts = database.rows(connection, "SELECT * FROM facts ORDER BY rate, variant, variant_dir, run")
        planned = database.rows(connection, "SELECT rate, variant, variant_dir, collected FROM planned")
        cache = Cache(tables, layout.cache_file(tables, campaign))
        source = Source(connection, tables, cache)
        behaviours = run_behaviour.find(source, facts, lag_limit or {})
        links = campaign_checks.links(campaign.root, facts)
        failed = list(error_causes.rows(source, facts))
        failed += error_causes.reported(connection, tables, campaign)
        copies = campaign_checks.copies(facts, links)
        runs, profiles = _judged(source, facts, declared, links, copies, behaviours=behaviours, failed=failed)
        # Two folders can be one variant.
        groups = [list(each) for _, each in groupby(runs, key=lambda run: (run["rate"], run["variant"]))]
        replicate_rows: list[Row] = []
        cells = _cells(source, groups, settings.confidence, replicate_rows=replicate_rows)
        cells_all = cells.copy()
        differing = [n for n, group in enumerate(groups) if _differs_with_excluded(group)]
        with_excluded = _cells(source, [groups[n] for n in differing], settings.confidence, with_excluded=True)
        for n, of_all in zip(differing, with_excluded, strict=True):
            cells_all[n] = of_all
        charts = distributions.of_campaign(source, runs)
        cache.save()
    suggestions = suggest(profiles, campaign_checks.unfinished(campaign, planned, declared))
    key = layout.campaign_key(campaign)
    rows = {
        "runs": runs,
        "run_shapes": [each.shape for each in behaviours if each.shape],
        "sending": [each.sending for each in behaviours],
        "senders": [row for each in behaviours for row in each.senders],
        "run_figures": distributions.run_figures(facts, [each.figures for each in behaviours]),
        "cells": list(chain.from_iterable(cells)),
        "cells_all": list(chain.from_iterable(cells_all)),
        "suggestions": [suggestion_row(each, key) for each in suggestions],
        "error_causes": failed,
        **charts,
    }
    layout.write_tables(tables, campaign, rows)
    path = layout.scope_file(tables, "replicates", campaign)
    layout.write_rows(tables, path, replicate_rows, "replicates", keep_empty=True)
    problems = [key | problem for problem in campaign_checks.problems(campaign, facts, planned, declared)]
    path = layout.partition(tables, "problems", campaign) / _PROBLEMS
    layout.write_rows(tables, path, problems, "problems")
    conclusions.of_campaign(campaign, tables, settings)
    return suggestions


# --- runs ------------------------------------------------------------------------------------------------------------


def _judged(
    source: Source,
    facts: Sequence[Row],
    declared: Declared,
    links: Mapping[str, str],
    copies: Mapping[str, str],
    *,
    behaviours: Sequence[RunBehaviour],
    failed: Sequence[Row],
) -> tuple[list[Row], list[Profile]]:
    """Rows of `runs`, and what suggestions for each depend on.

    `links` and `copies` are of `campaign_checks`, `failed` are rows of `error_causes`.
    """
    causes = by_key([row for row in failed if row["stream"] == MAIN_STREAM], _place)
    rows = database.rows(source.connection, sql.load("reported_runs"), stream=MAIN_STREAM)
    reported = {_place(row): row for row in rows}
    named = Counter(map(_place, facts))
    loads: dict[tuple[Any, ...], set[Way]] = defaultdict(set)
    protocols: dict[tuple[Any, ...], set[Way]] = defaultdict(set)
    for fact in facts:
        cell = fact["rate"], fact["variant"]
        loads[cell].add(_load(fact))
        if fact["protocol"] is not None:
            protocols[cell].add(Way(protocol=fact["protocol"]))
    runs, profiles = [], []
    for fact, behaviour in zip(facts, behaviours, strict=True):
        key, found = _place(fact), behaviour.figures
        # Without requests, or if some are missing, `counted` is what the tool reported; `found` is of requests alone.
        counted = found | {"requests": found.get("n_requests")} if fact["evidence"] == "raw" else reported.get(key, {})
        verdict = judge(
            fact,
            counted.get("requests"),
            found.get("repeated", 0),
            declared.tags,
            declared.excluding,
            ambiguous=named[key] > 1,
            linked_to=links.get(fact["source"]),
            loads=loads[fact["rate"], fact["variant"]],
            protocols=protocols[fact["rate"], fact["variant"]],
        )
        started_at = counted.get("started_at") or fact["started_at"]
        run = fact | {
            "started_at": started_at and (started_at if started_at.tzinfo else started_at.replace(tzinfo=UTC)),
            "requests": counted.get("requests"),
            "send_lag_p99_ns": behaviour.sending.get("lag_p99_ns"),
        }
        run |= verdict.columns()
        runs.append(run)
        profiles.append(
            _profile(run, counted, verdict, copies.get(fact["source"]), behaviour=behaviour, causes=causes[key])
        )
    return runs, profiles


def _place(row: Row) -> tuple[str, float, int]:
    """Identifies a run within a campaign."""
    return row["variant_dir"], row["rate"], row["run"]


def _has_same_number(run: Row) -> bool:
    return any(each["code"] == SAME_NUMBER for each in run["exclusions"])


def _load(fact: Row) -> Way:
    """How a run was measured: runs that differ in it are never pooled."""
    return Way(fact["load_model"], fact["generator"])


def _profile(
    run: Row, counted: Row, verdict: Verdict, copy_of: str | None, *, behaviour: RunBehaviour, causes: Sequence[Row]
) -> Profile:
    """`counted` has figures of the run's requests or of the tool's summary, `causes` say why requests failed."""
    return Profile(
        **{
            name: run[name]
            for name in ("variant", "rate", "run", "requests", "tags", "target_problem", "results_sha256")
        },
        expected=run["expected_requests"],
        sound=not verdict.unfit,
        changed=any(each["code"] == CHANGED for each in run["exclusions"]),
        failed_share=counted.get("failed_share"),
        mean_ns=counted.get("mean_ns"),
        exhausted=error_causes.exhausted(causes, run["requests"]),
        copy_of=copy_of,
        noise=behaviour.shape["noise"] if behaviour.shape else None,
        unsettled=run_behaviour.unsettled_text(behaviour.shape) if behaviour.shape else None,
        late=run_behaviour.late_text(behaviour.sending),
        out_of_sync=behaviour.out_of_sync,
    )


# --- cells -----------------------------------------------------------------------------------------------------------


def _differs_with_excluded(runs: Sequence[Row]) -> bool:
    """Whether `cells_all` has another row than `cells`: some runs are excluded, and all were measured in one way."""
    sent_by = {run["protocol"] for run in runs} - {None}
    one_load = len({_load(run) for run in runs}) == 1 and len(sent_by) < 2
    return one_load and any(run["excluded"] for run in runs)


def _cells(
    source: Source,
    groups: Sequence[Sequence[Row]],
    confidence: float,
    *,
    replicate_rows: list[Row] | None = None,
    with_excluded: bool = False,
) -> list[list[Row]]:
    """For each of `groups`, the runs of a cell, one row per stream: over the valid runs, or over all.

    Adds rows to `replicate_rows`. Runs of the same number in two folders are in none, because their requests can't be
    told apart.
    """
    pools = []
    for runs in groups:
        counting = [run for run in runs if not run["excluded"] or (with_excluded and not _has_same_number(run))]
        included = replicates.ordered([run for run in counting if run["requests_file"]])
        pools.append(Pool(sorted({run["requests_file"] for run in included}), included))
    known = [n for n, pool in enumerate(pools) if pool.runs]
    computed = replicates.cells(source, [pools[n] for n in known], confidence, with_excluded=with_excluded)
    found: list[list[Row]] = [[] for _ in groups]
    for n, rows in zip(known, computed, strict=True):
        runs, resolutions_ns = groups[n], [run["resolution_ns"] for run in pools[n].runs if run["resolution_ns"]]
        key = {name: runs[0][name] for name in schema.CELL_KEY}
        own = {"n_excluded": sum(run["excluded"] for run in runs), "resolution_ns": max(resolutions_ns, default=None)}
        for cell in rows:
            text = cell.pop("replicates")
            if replicate_rows is not None and cell["stream"] == MAIN_STREAM:
                replicate_rows += replicates.rows(key, replicates.from_text(text))
            found[n].append(key | cell | own)
    return found
