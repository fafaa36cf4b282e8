"""The start page and the lists of campaigns and comparisons: what the archive holds, newest first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from loadstone.archive import Campaign, plan
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report import quality_page
from loadstone.report.labels import LOAD_MODELS, distinct
from loadstone.report.numbers import counted, when
from loadstone.report.quality_page import Key, key_of
from loadstone.report.queries import Questions, Row
from loadstone.report.slugs import slug
from loadstone.tables.layout import campaign_key, text
from loadstone.text import load_unit, rate_text

NEWEST = 6  # campaigns that the start page shows; the others come when the reader looks for them


def entries(
    questions: Questions, campaigns: Sequence[Campaign], variants: Variants, purposes: Mapping[Key, str]
) -> list[dict[str, Any]]:
    """Every campaign, newest first: what it holds, what is amiss, and where its page is."""
    held = {key_of(row): row for row in questions.rows("page_campaigns")}
    cells: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in questions.rows("page_quality"):
        cells[key_of(row)].append(row)
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    return [_entry(campaign, held, cells, variants, purposes) for campaign in newest_first]


def _entry(
    campaign: Campaign,
    held: Mapping[Key, Row],
    cells: Mapping[Key, list[Row]],
    variants: Variants,
    purposes: Mapping[Key, str],
) -> dict[str, Any]:
    key = key_of(campaign_key(campaign))
    row = held.get(key)
    names = row["variants"] if row else ()
    is_told = variants.declared.get(campaign.app, {}).keys() >= set(names)
    styles = distinct(variants.styles(campaign.app, names, [] if is_told else plan.declared_variants(campaign)))
    models = row["load_models"] if row else []
    own = cells.get(key, [])
    return {
        "campaign": campaign,
        "key": key,
        "purpose": purposes.get(key),
        "name": f"{campaign.app} on {campaign.host}, {when(campaign)}",
        "when": when(campaign),
        "page": f"campaigns/{slug(campaign)}.html",
        "slug": slug(campaign),
        "state": _state(campaign),
        "held": row,
        "styles": styles,
        "labels": {style.name: style.label for style in styles},
        "rates": _rates(row["rates"] if row else []),
        "load_unit": load_unit(models),
        "load_models": [LOAD_MODELS.get(model, model).partition(":")[0] for model in models],
        "cells": own,
        "counts": quality_page.counts(own),
    }


def _rates(rates: Sequence[float]) -> str:
    texts = [rate_text(rate) for rate in rates]
    return f"{texts[0]} to {texts[-1]} in {len(texts)} steps" if len(texts) > 5 else ", ".join(texts)


def quality_says(total: Mapping[str, int], n_problems: int, n_suggestions: int) -> str:
    """What the start page says that the page of data quality has."""
    amiss = total["left out"] or total["failed"] or total["missing"]
    parts = [
        "says why runs are left out or missing" if amiss else "shows every run",
        f"names {counted(n_problems, 'problem')}" if n_problems else "",
        f"has {counted(n_suggestions, 'suggested tag')}" if n_suggestions else "",
    ]
    *most, last = filter(None, parts)
    return f"{', '.join(most)} and {last}" if most else last


def compared(comparisons: Sequence[Comparison], campaigns: Sequence[Campaign]) -> list[dict[str, Any]]:
    """Every declared comparison with how many of its campaigns the archive holds; without any it has no page."""
    held = {(campaign.app, campaign.host, campaign.timestamp) for campaign in campaigns}
    found = []
    for comparison in comparisons:
        named = [(comparison.app, host, timestamp) for host in comparison.hosts for timestamp in comparison.timestamps]
        found.append(
            {
                "id": comparison.id,
                "title": comparison.title,
                "of": f"{comparison.app} on {' and '.join(comparison.hosts)}",
                "app": comparison.app,
                "page": f"comparisons/{comparison.id}.html",
                "n_held": sum(key in held for key in named),
                "n_named": len(named),
            }
        )
    return found


def traced(dumps: Sequence[Dump]) -> list[dict[str, Any]]:
    """Every trace dump with its page, newest first."""
    newest_first = sorted(
        dumps, key=lambda dump: (dump.saved_at or datetime.min.replace(tzinfo=UTC), dump), reverse=True
    )
    return [
        {
            "page": f"traces/{dump.slug}.html",
            "name": text(dump.source),
            "campaign": f"campaigns/{slug(dump.campaign)}.html" if dump.campaign else None,
            "of": f"{dump.app} on {dump.host}, {dump.timestamp}",
        }
        for dump in newest_first
    ]


def _state(campaign: Campaign) -> str:
    if campaign.is_open:
        return "open: runs may still be added"
    return "given up" if campaign.is_abandoned else "complete"
