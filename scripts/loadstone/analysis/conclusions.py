"""Draws conclusions from one scope, a campaign or a comparison, and writes their tables. Reads no request.

Called at the end of `analyse` and of `compare`, when all their tables are written. To add a table of conclusions, add a
function from `Scope` to rows to `_CONCLUSIONS`, its name to `tables.SCOPED` and its columns to `tables/columns.yaml`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from loadstone.analysis import Row, by_key, caveats, effects, layers, replicates, saturation
from loadstone.analysis.scope import Scope, Series, Settings, grouped, run_key, way
from loadstone.archive import Campaign, plan
from loadstone.config.comparisons import Comparison
from loadstone.stats import Replicates
from loadstone.tables import database, layout

_CONCLUSIONS: Mapping[str, Callable[[Scope], Iterable[Row]]] = {
    "effects": effects.effects,
    "knees": saturation.knees,
    "knee_shares": saturation.shares,
    "layers": layers.layers,
    "interactions": layers.interactions,
    "claims": caveats.claims,
}

_NONE = Replicates({}, {}, {}, 0, 0)


def of_campaign(campaign: Campaign, tables: Path, settings: Settings) -> None:
    """Write the conclusions from one campaign. Raises LoadstoneError when `tables` can't be written."""
    with database.connect(tables, [campaign]) as connection:
        write(tables, scope_of_campaign(connection, campaign, tables, settings))


def scope_of_campaign(
    connection: duckdb.DuckDBPyConnection, campaign: Campaign, tables: Path, settings: Settings
) -> Scope:
    """What conclusions about one campaign are drawn from; `connection` has a view per table, limited to it."""
    database.add_view(connection, tables, "replicates", [campaign])
    runs = database.rows(connection, "SELECT * FROM runs ORDER BY rate, variant, variant_dir, run")
    by_cell = by_key(database.rows(connection, "FROM replicates"), itemgetter("rate", "variant"))
    series = []
    for group in grouped([run for run in runs if not run["excluded"]]):
        rows = by_cell[group[0]["rate"], group[0]["variant"]]
        series.append((group, replicates.from_rows(rows) if rows else None))
    excluded = [run for run in runs if run["excluded"]]
    return scope_of(connection, None, [campaign], settings, series=series, excluded=excluded)


def scope_of(
    connection: duckdb.DuckDBPyConnection,
    comparison: Comparison | None,
    campaigns: Sequence[Campaign],
    settings: Settings,
    *,
    series: Sequence[tuple[Sequence[Row], Replicates | None]],
    excluded: Sequence[Row],
) -> Scope:
    """What conclusions about a comparison or (None) one campaign are drawn from.

    `series` are the runs of each variant at each rate that were measured in one way, with their replicates where
    requests are known. `excluded` are the excluded runs. `connection` is as in `Scope`.
    """
    reported = {
        run_key(row): row
        for row in database.rows(connection, "SELECT * FROM summaries WHERE preferred AND stream = 'main' ORDER BY ALL")
    }
    names = {run["variant_dir"]: run["variant"] for runs, _ in series for run in runs}
    variants = _in_order(names, settings, campaigns)
    declared = comparison.baseline if comparison else None
    return Scope(
        comparison=comparison.id if comparison else None,
        app=comparison.app if comparison else layout.campaign_key(campaigns[0])["app"],
        campaigns=campaigns,
        variants=variants,
        baseline=declared or next(iter(variants), None),
        margin=settings.margin if comparison is None or comparison.margin is None else comparison.margin,
        confidence=settings.confidence,
        series=[_series(runs, found, reported) for runs, found in series],
        connection=connection,
        over=settings.over,
        excluded=excluded,
        **({"includes": comparison.takes} if comparison else {}),
    )


def write(tables: Path, scope: Scope) -> None:
    """Write the conclusions from a scope. Raises LoadstoneError when `tables` can't be written."""
    rows = {table: list(conclude(scope)) for table, conclude in _CONCLUSIONS.items()}
    layout.write_tables(tables, scope.comparison or scope.campaigns[0], rows)


def _series(runs: Sequence[Row], found: Replicates | None, reported: Mapping[tuple[Any, ...], Row]) -> Series:
    place = runs[0]["rate"], runs[0]["variant"], way(runs[0])
    ordered = replicates.ordered(runs)
    if found is not None:
        return Series(*place, "requests", [run for run in ordered if run["evidence"] == "raw"], found, [])
    known = [run for run in ordered if run_key(run) in reported]
    return Series(*place, "reports", known, _NONE, [reported[run_key(run)] for run in known])


def _in_order(canonical: Mapping[str, str], settings: Settings, campaigns: Sequence[Campaign]) -> list[str]:
    """Variants as pages order them: as declared, then as the newest sweeps planned them, then by name.

    `canonical` has the canonical name of each folder with runs.
    """
    names = set(canonical.values())
    known = list(settings.order)
    if not names.issubset(known):
        newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
        planned = chain.from_iterable(map(plan.declared_variants, newest_first))
        known += [canonical.get(folder, folder) for folder in planned]
    return [*(name for name in dict.fromkeys(known) if name in names), *sorted(names.difference(known))]
