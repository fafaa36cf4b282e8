"""What the start page and ``index.json`` say of each campaign and comparison: what was found, and how far it is.

In: tables `effects`, `knees`, `claims` and `history` over all campaigns. Out: entries with a headline, the cards of the
start page, and the same for programs.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.analysis.caveats import SERIOUS
from loadstone.archive import Campaign
from loadstone.archive.progress import duration_text
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Style, Variants
from loadstone.report import conclusions, findings
from loadstone.report.findings import Finding
from loadstone.report.numbers import change_text, incomplete, minute, moment, styles_of
from loadstone.report.output import write_text
from loadstone.report.queries import Queries, Row
from loadstone.report.site_layout import INDEX, slug
from loadstone.tables.layout import campaign_key
from loadstone.text import counted, load_unit, rate_text

Key = tuple[str, str, str]
Entry = dict[str, Any]  # one of `campaign_entries`
Tables = Mapping[Key | str, Mapping[str, Sequence[Row]]]  # by campaign or comparison, then by table

_CONCLUDED = {"effects": "page_headlines", "knees": "table_rows", "claims": "table_rows"}
_SCHEMA = 1  # of index.json


def key_of(row: Row) -> Key:
    """The campaign of a row."""
    return row["app"], row["host"], row["timestamp"]


def by_campaign(rows: Sequence[Row]) -> defaultdict[Key, list[Row]]:
    """Rows grouped by campaign."""
    grouped: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[key_of(row)].append(row)
    return grouped


def campaign_entries(
    queries: Queries,
    campaigns: Sequence[Campaign],
    variants: Variants,
    purposes: Mapping[Key, str],
    tables: Tables,
) -> list[Entry]:
    """Every campaign, newest first: what it found, its runs by state, variants and loads, the address of its page."""
    held = {key_of(row): row for row in queries.rows("page_campaigns")}
    cells = by_campaign(queries.rows("page_quality"))
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    entries = [_entry(campaign, held, cells, variants, purposes) for campaign in newest_first]
    return [entry | _found(tables.get(entry["key"], {}), entry["styles"], _resolution(entry)) for entry in entries]


def _resolution(entry: Entry) -> float | None:
    return entry["held"]["resolution_ns"] if entry["held"] else None


def _entry(
    campaign: Campaign,
    held: Mapping[Key, Row],
    cells: Mapping[Key, list[Row]],
    variants: Variants,
    purposes: Mapping[Key, str],
) -> Entry:
    key = key_of(campaign_key(campaign))
    row = held.get(key)
    names = row["variants"] if row else ()
    styles = styles_of(variants, [campaign], campaign.app, names)
    models = row["load_models"] if row else []
    own = cells.get(key, [])
    counts = Counter(run["state"] for cell in own for run in cell["runs"])
    return {
        "campaign": campaign,
        "key": key,
        "purpose": purposes.get(key),
        "page": f"campaigns/{slug(campaign)}.html",
        "slug": slug(campaign),
        "state": _state(campaign, row or {}, counts),
        "held": row,
        "styles": styles,
        "labels": {style.name: style.label for style in styles},
        "loads": _loads(row["rates"] if row else [], load_unit(models)),
        "load_unit": load_unit(models),
        "load_models": models,
        "cells": own,
        "counts": counts,
    }


def _loads(rates: Sequence[float], unit: str) -> str:
    texts = [rate_text(rate) for rate in rates]
    if len(texts) > 5:
        return f"{texts[0]} to {texts[-1]} {unit} in {len(texts)} steps"
    return f"{', '.join(texts)} {unit}" if texts else ""


def _state(campaign: Campaign, held: Row, counts: Counter[str]) -> str:
    if campaign.is_open:
        return incomplete(held, has_failed=bool(counts["failed"]))
    if campaign.is_abandoned:
        return "complete, but its extension was given up" if campaign.is_completed else "given up"
    return "complete"


def concluded(queries: Queries) -> Tables:
    """The rows of the tables of conclusions by what they are about; of `effects` those of median and mean."""
    found: dict[Key | str, dict[str, list[Row]]] = {}
    for table, query in _CONCLUDED.items():
        for row in queries.rows(query, **({"name": table} if query == "table_rows" else {})):
            about = row["comparison"] or (row["app"], row["host"], row["timestamps"][0])
            found.setdefault(about, {}).setdefault(table, []).append(row)
    return found


def _found(rows: Mapping[str, Sequence[Row]], styles: Sequence[Style], resolution_ns: float | None) -> dict[str, Any]:
    """What a campaign or a comparison found: its headline, and every variant at the headline's load."""
    effects = conclusions.with_caveats(rows.get("effects", ()), rows.get("claims", ()))
    labels = {style.name: style.label for style in styles}
    found = findings.at_one_load(effects, rows.get("knees", ()), labels, resolution_ns)
    headline, shown = findings.headline(found), found[:SHOWN]
    marked, claims = [*shown, headline] if headline else shown, rows.get("claims", ())
    letters = conclusions.letters(claims)
    lettered = findings.lettered_caveats(marked, letters)
    by_weight = conclusions.claims_by_weight(claims, lambda variant: labels.get(variant, variant))
    serious = dict(conclusions.caveats_in_brief(by_weight, (), lettered)).get(SERIOUS, [])
    in_badge = {row[0] for row in serious}
    return {
        "headline": headline,
        "headline_mark": findings.letters_of_caveats(headline, letters),
        "findings": found,
        "plots": findings.plots(found, styles),
        "marks": [findings.mark(each, letters) for each in shown],
        "serious": serious,
        "caveats": [each for each in lettered.values() if each["heading"] not in in_badge],
    }


def comparison_entries(
    comparisons: Sequence[Comparison], campaigns: Sequence[Campaign], variants: Variants, tables: Tables
) -> list[Entry]:
    """Every declared comparison, with what it found and how many of its campaigns the archive holds.

    Without any of them it has no page.
    """
    held = {campaign.key: campaign for campaign in campaigns}
    found = []
    for comparison in comparisons:
        rows = tables.get(comparison.id, {})
        names = {row[side] for row in rows.get("effects", ()) for side in ("variant", "baseline")}
        names |= {row["variant"] for row in rows.get("claims", ()) if row["variant"]}
        named = list(product([comparison.app], comparison.hosts, comparison.timestamps))
        own = [held[key] for key in named if key in held]
        found.append(
            {
                "declared": comparison,
                "page": f"comparisons/{comparison.id}.html",
                "n_held": len(own),
                "n_named": len(named),
                **_found(rows, styles_of(variants, own, comparison.app, names), None),
            }
        )
    return found


# --- cards -----------------------------------------------------------------------------------------------------------


SHOWN = 6  # variants of a card
CARDS = 24  # apps and hosts that the start page shows, those with the newest campaigns
OLDER = 400  # campaigns that its search finds; the list of campaigns finds all


def cards(queries: Queries, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Per app and host, newest first: the newest complete campaign, what changed, and what is in progress."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry["key"][:2], []).append(entry)
    shown = [(newest_complete(group), group) for group in list(groups.values())[:CARDS]]
    keys = [list(entry["key"]) for entry, _ in shown]
    changes = by_campaign(queries.rows("page_changes", campaigns=keys, statistic="p50"))
    return [
        {
            "entry": entry,
            "others": len(group) - 1,
            "changes": _changes(changes[entry["key"]], entry["labels"]) or _first_campaign_text(entry, group),
            "in_progress": next(map(_in_progress, filter(_is_begun, group)), None),
        }
        for entry, group in shown
    ]


def newest_complete(group: Sequence[Entry]) -> Entry:
    """The newest complete campaign with results; without any, the newest."""
    complete = (entry for entry in group if entry["campaign"].is_completed and entry["held"])
    return next(complete, next((entry for entry in group if entry["held"]), group[0]))


def _changes(rows: Sequence[Row], labels: Mapping[str, str]) -> str:
    """What changed since the campaign before, in a sentence; empty for the first one."""
    if not rows:
        return ""
    before = minute(max(row["before_timestamp"] for row in rows))
    changed = [row for row in rows if row["change"] and row["before"]]
    if not changed:
        return f"No change of a median detected since {before}."
    largest = max(changed, key=lambda row: abs(row["value"] / row["before"] - 1))
    size, _ = change_text(largest["value"] / largest["before"], None)
    more = f", and {counted(len(changed) - 1, 'more change')}" if len(changed) > 1 else ""
    variant = labels.get(largest["variant"], largest["variant"])
    return f"Since {before}: median of {variant} at {rate_text(largest['rate'])} {size}{more}."


def _first_campaign_text(entry: Entry, group: Sequence[Entry]) -> str:
    """Says that there is no complete campaign before; empty where there is."""
    complete = [each for each in group if each["campaign"].is_completed and each["held"]]
    return "The first complete campaign: nothing to compare it with." if complete == [entry] else ""


def _is_begun(entry: Entry) -> bool:
    return entry["campaign"].is_open and bool(entry["held"] and entry["held"]["planned"])


def _in_progress(entry: Mapping[str, Any]) -> dict[str, Any]:
    """How far an open campaign is; `left` is the load that is missing, by the mean length of its runs."""
    held = entry["held"]
    left = (held["planned"] or 0) - (held["planned_collected"] or 0)
    left_s = left * held["run_s"] if held["run_s"] else None
    return {"entry": entry, "left": duration_text(left_s) if left_s else None}


def newest_result(entries: Sequence[Entry], title: str) -> dict[str, Any]:
    """What a link to the start page shows (`figures.link_preview`): the newest complete campaign with a headline."""
    concluded = [entry for entry in entries if entry["headline"]]
    if not concluded:
        lead = f"{counted(len(entries), 'campaign')} of load tests" if entries else "No campaign yet"
        return {"site_title": "", "title": title, "headline": None, "plots": [], "lead": lead}
    found = newest_complete(concluded)
    campaign = found["campaign"]
    where = f"Newest result: {campaign.app} on {campaign.host}, {moment(campaign.timestamp)}"
    return {"site_title": where, "title": title} | {name: found[name] for name in ("headline", "plots")}


# --- for programs ----------------------------------------------------------------------------------------------------


def write_index(reports: Path, title: str, entries: Sequence[Entry], comparisons: Sequence[Entry]) -> Path:
    """Write ``index.json``; config/schemas/index.schema.json describes it, and says what may change."""
    content = {
        "schema": _SCHEMA,
        "about": f"Made by Loadstone {__version__}",
        "title": title,
        "campaigns": [_campaign(entry) for entry in entries],
        "comparisons": [_comparison(entry) for entry in comparisons],
    }
    path = reports / INDEX
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _campaign(entry: Entry) -> dict[str, Any]:
    campaign, held = entry["campaign"], entry["held"] or {}
    app, host, timestamp = entry["key"]
    return {
        "app": app,
        "host": host,
        "timestamp": timestamp,
        "state": "open" if campaign.is_open else "complete" if campaign.is_completed else "given up",
        "page": entry["page"],
        "variants": held.get("variants", []),
        "loads": held.get("rates", []),
        "load_unit": entry["load_unit"],
        "planned_runs": held.get("planned"),
        "runs": dict(entry["counts"]),
        "requests": held.get("n_requests", 0),
        **_verdicts(entry),
    }


def _comparison(entry: Entry) -> dict[str, Any]:
    declared = entry["declared"]
    about = {"id": declared.id, "title": declared.title, "app": declared.app, "hosts": list(declared.hosts)}
    return about | {"page": entry["page"], **_verdicts(entry)}


def _verdicts(entry: Entry) -> dict[str, Any]:
    headline = entry["headline"]
    return {
        "headline": headline.sentence if headline else None,
        "verdicts": [_verdict(found) for found in entry["findings"]],
    }


def _verdict(found: Finding) -> dict[str, Any]:
    names = ("variant", "baseline", "statistic", "value", "baseline_value", "confidence")
    bounds = {name: found.row[name] for name in ("ratio_low", "ratio_high", "shift_low", "shift_high")}
    return {
        **{name: found.row[name] for name in names},
        "load": found.row["rate"],
        "verdict": found.verdict,
        "ratio": found.ratio,
        "shift": found.shift,
        **bounds,
        "n_runs": found.row["n_runs"],
        "baseline_n_runs": found.row["baseline_n_runs"],
        "caveats": list(found.row.get("caveats", ())),
    }
