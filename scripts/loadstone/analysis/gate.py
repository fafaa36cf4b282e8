"""Did it get slower since? The newest complete campaign of each app and host against earlier ones of the archive.

Each figure (a statistic of a variant at a rate) is compared with the same figure of earlier campaigns that measured it
in the same way; tests are those of `loadstone.stats.slower`, of shares of failures those of `loadstone.stats.shares`.
That one of all is called worse by chance happens at most once in 20 (1 - confidence): p values are adjusted by Holm's
method. That all are no worse needs no adjustment, since each of them has to show it (Berger 1982, "Multiparameter
hypothesis testing", Technometrics 24(4)). The best of several references is not picked by its value, which would be
chance in part: a figure is worse than the best of them when it is worse than any, with as many tests more.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from loadstone import sql
from loadstone.analysis import history, open_percentiles
from loadstone.analysis.caveats.definitions import DECIDING_SHARE
from loadstone.analysis.cell_figures import ERRORS, failed
from loadstone.analysis.gate_figure import Tested, campaign_of, compared, findings
from loadstone.analysis.gate_finding import INCONCLUSIVE, RUNS, Finding, failures, percent
from loadstone.analysis.gate_options import Options
from loadstone.analysis.gate_outcome import Judged
from loadstone.archive import Campaign, parse_timestamp
from loadstone.errors import LoadstoneError
from loadstone.tables import database, layout, schema
from loadstone.text import listed, load_unit, rate_text

_Cell = dict[str, Any]
_Key = tuple[str, str, str]
_Place = tuple[str, str, str, str, float, bool]  # the last: whether there are runs of it
_UNCOUNTED, _UNMEASURED = "none of its runs counts", "planned, and not measured"


def judge(campaigns: Sequence[Campaign], candidates: Sequence[Campaign], tables: Path, options: Options) -> Judged:
    """Judge one of the `candidates` of each app and host by the tables of all `campaigns`.

    Raises LoadstoneError when the configuration names a campaign that is not there.
    """
    chosen = _chosen(candidates, campaigns, options)
    with database.open_memory() as connection:
        cells = history.measured(connection, tables, campaigns)
        open_percentiles.add(connection, tables, campaigns, cells)
        database.add_view(connection, tables, "planned", schema.PLANNED, campaigns)
        places: list[_Place] = connection.sql(sql.load("gate_places")).fetchall()
    told = judge_cells(cells, places, chosen, options) + _vanished(places, chosen, options)
    told += _empty(chosen, {campaign_of(row) for row in cells} | {place[:3] for place in places})
    told = _counted(told, cells)
    order = sorted(told, key=lambda each: (each.app, each.host, each.rate, each.variant, each.statistic))
    beside = {(each.app, each.host, each.reference) for each in told if each.reference}
    said = [*warnings(cells, chosen), *_late(cells, chosen | beside)]
    return Judged(order, options, sorted(chosen), _newer(chosen, campaigns, options), said)


def judge_cells(
    cells: Sequence[_Cell], places: Sequence[_Place], chosen: Collection[_Key], options: Options
) -> list[Finding]:
    """Findings on all figures of the `chosen` campaigns.

    `cells` are those of `history.measured`; `places` name the variants and rates that are planned or measured.
    """
    tested: list[Tested] = []
    told: list[Finding] = []
    for group in history.series(cells):
        for position, cell in enumerate(group):
            for statistic in options.statistics if campaign_of(cell) in chosen else ():
                found = compared(group[:position], cell, statistic, options)
                if isinstance(found, Finding):
                    told.append(found)
                else:
                    tested.append(found)
    have = {(*campaign_of(cell), cell["variant"], cell["rate"]) for cell in cells}
    told += [
        Finding(app, host, time, variant, rate, statistic, INCONCLUSIVE, _UNCOUNTED if measured else _UNMEASURED, RUNS)
        for app, host, time, variant, rate, measured in places
        if (app, host, time) in chosen and (app, host, time, variant, rate) not in have
        for statistic in options.statistics
    ]
    return told + findings(tested, options)


def warnings(cells: Sequence[_Cell], chosen: Collection[_Key]) -> list[str]:
    """A text for each variant of the `chosen` campaigns so many of whose requests failed that latencies tell little."""
    found: dict[tuple[str, str, str], list[_Cell]] = {}
    for cell in cells:
        if campaign_of(cell) in chosen and (cell[ERRORS] or 0.0) > DECIDING_SHARE:
            found.setdefault((cell["app"], cell["host"], cell["variant"]), []).append(cell)
    texts = []
    for (app, host, variant), of in sorted(found.items()):
        rates = listed(map(rate_text, sorted({cell["rate"] for cell in of})))
        unit, most = load_unit(cell["load_model"] for cell in of), max(cell[ERRORS] for cell in of)
        text = f"{app}/{host}: {variant} at {rates} {unit}: {'up to ' * (len(of) > 1)}{percent(most)} of requests"
        are_failures = any(failed(cell) is not None for cell in of)
        texts.append(f"{text} failed{f', so that latencies are of {failures(most)}' * are_failures}")
    return texts


def _late(cells: Sequence[_Cell], of: Collection[tuple[str, ...]]) -> list[str]:
    """A text for each variant of campaigns that were compared some of whose runs were sent late."""
    late = [cell for cell in cells if cell["n_late"] and campaign_of(cell) in of]
    texts = []
    for key, found in groupby(sorted(late, key=_variant), key=_variant):
        group = list(found)
        rates = listed(map(rate_text, sorted({cell["rate"] for cell in group})))
        runs = f"{sum(cell['n_late'] for cell in group)} of {sum(cell['n_runs'] for cell in group)} runs"
        unit = load_unit(cell["load_model"] for cell in group)
        texts.append(f"{'/'.join(key[:3])}: {key[3]} at {rates} {unit}: {runs} were sent late by the load generator")
    return texts


def _variant(cell: _Cell) -> tuple[str, str, str, str]:
    return *campaign_of(cell), cell["variant"]


def _counted(told: Sequence[Finding], cells: Sequence[_Cell]) -> list[Finding]:
    """Findings with what their loads count: as measured there, else in that campaign, else ever."""
    models: dict[tuple[object, ...], set[str]] = {}
    for cell in cells:
        key, place = campaign_of(cell), (cell["variant"], cell["rate"])
        for known in ((*key, *place), key, (*key[:2], *place)):
            models.setdefault(known, set()).add(cell["load_model"])

    def of(each: Finding) -> set[str]:
        place = (each.variant, each.rate)
        keys = ((*each.campaign, *place), each.campaign, (*each.campaign[:2], *place))
        return next((models[key] for key in keys if key in models), set())

    return [replace(each, unit=load_unit(of(each) or {None})) for each in told]


# --- which campaigns -------------------------------------------------------------------------------------------------


def _chosen(candidates: Sequence[Campaign], campaigns: Sequence[Campaign], options: Options) -> set[_Key]:
    """The campaign of each app and host that is judged."""
    for name, of in ((options.candidate, candidates), (options.reference, campaigns)):
        if parse_timestamp(name) is not None and all(layout.text(each.timestamp) != name for each in of):
            which = "complete campaign" if of is candidates else "campaign"
            raise LoadstoneError(f"gate: the archive holds no {which} {name}; `gate` in config/config.yaml names it")
    newest: dict[tuple[str, str], Campaign] = {}
    for campaign in sorted(candidates, key=lambda campaign: _started(campaign.timestamp)):
        if options.candidate in ("newest", layout.text(campaign.timestamp)):
            newest[campaign.app, campaign.host] = campaign
    if not newest:
        raise LoadstoneError("gate: the archive holds no complete campaign, so there is nothing to judge")
    return {_key(campaign) for campaign in newest.values()}


def _started(timestamp: str) -> tuple[float, str]:
    started = parse_timestamp(timestamp)
    return (-math.inf if started is None else started.timestamp()), timestamp


def _key(campaign: Campaign) -> _Key:
    app, host, timestamp = layout.campaign_key(campaign).values()
    return app, host, timestamp


def _newer(chosen: set[_Key], campaigns: Sequence[Campaign], options: Options) -> list[_Key]:
    """What began after the campaigns that are judged as the newest."""
    if options.candidate != "newest":
        return []
    judged = {key[:2]: _started(key[2]) for key in chosen}
    keys = sorted(_key(each) for each in campaigns)
    return [key for key in keys if key[:2] in judged and _started(key[2]) > judged[key[:2]]]


def _vanished(places: Sequence[_Place], chosen: set[_Key], options: Options) -> list[Finding]:
    """What the reference, or the campaign before, measured and the candidate neither measured nor planned."""
    told = []
    for key in sorted(chosen):
        of = [place for place in places if place[:2] == key[:2]]
        have = {place[3:5] for place in of if place[2] == key[2]}
        before = {place[2] for place in of if place[5] and _started(place[2]) < _started(key[2])}
        if parse_timestamp(options.reference) is not None:
            before &= {options.reference}
        if not have or not before:
            continue
        last = max(before, key=_started)
        lacking = sorted({place[3:5] for place in of if place[2] == last and place[5]} - have)
        told += [
            Finding(*key, variant, rate, statistic, INCONCLUSIVE, f"not measured, as it was in {last}", RUNS)
            for variant, rate in lacking
            for statistic in options.statistics
        ]
    return told


def _empty(chosen: set[_Key], present: set[_Key]) -> list[Finding]:
    return [
        Finding(*key, "any variant", 0.0, "all", INCONCLUSIVE, "it holds no run", RUNS)
        for key in sorted(chosen - present)
    ]
