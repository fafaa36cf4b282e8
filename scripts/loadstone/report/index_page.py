"""What the start page says: every campaign, newest first, with what it holds, lacks and leaves out."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from loadstone.archive import Campaign, slug
from loadstone.comparisons import Comparison
from loadstone.dumps import Dump
from loadstone.report.campaign_page import LOAD_MODELS, distinct
from loadstone.report.numbers import rate_text, when
from loadstone.report.queries import Questions, Row
from loadstone.tables.layout import campaign_key, text
from loadstone.variants import Variants

SHOWN = 50  # problems listed per campaign; beyond that their number is given
EXAMPLES = 5  # left-out runs named per reason

Key = tuple[str, str, str]


def context(questions: Questions, campaigns: Sequence[Campaign], variants: Variants) -> dict[str, Any]:
    """The variables of ``index.html``."""
    held = {_key(row): row for row in questions.rows("page_campaigns")}
    exclusions = _by_campaign(questions.rows("page_exclusions", shown=EXAMPLES))
    problems = _by_campaign(questions.rows("page_problems", shown=SHOWN))
    missing = _by_campaign(questions.rows("page_missing"))
    suggested = _by_campaign(questions.rows("page_suggestions", shown=1))
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    entries = []
    for campaign in newest_first:
        key = _key(campaign_key(campaign))
        row = held.get(key)
        styles = distinct(variants.styles(campaign.app, row["variants"] if row else ()))
        entries.append(
            {
                "campaign": campaign,
                "key": key,
                "n_suggestions": suggested[key][0]["n_suggestions"] if suggested[key] else 0,
                "page": f"campaigns/{slug(campaign)}.html",
                "when": when(campaign),
                "state": _state(campaign),
                "held": row,
                "styles": styles,
                "labels": {style.name: style.label for style in styles},
                "rates": [rate_text(rate) for rate in row["rates"]] if row else [],
                "load_models": [LOAD_MODELS.get(model, model).partition(":")[0] for model in row["load_models"]]
                if row
                else [],
                "exclusions": exclusions[key],
                "problems": problems[key],
                "n_problems": problems[key][0]["n_problems"] if problems[key] else 0,
                "n_missing": sum(len(lacking["runs"]) for lacking in missing[key]),
                "missing": missing[key],
            }
        )
    return {
        "entries": entries,
        "n_runs": sum(row["n_runs"] for row in held.values()),
        "n_requests": sum(row["n_requests"] for row in held.values()),
    }


def compared(comparisons: Sequence[Comparison], campaigns: Sequence[Campaign]) -> list[dict[str, Any]]:
    """Every declared comparison with how many of its campaigns the archive holds; without any it has no page."""
    held = {(campaign.app, campaign.host, campaign.timestamp) for campaign in campaigns}
    entries = []
    for comparison in comparisons:
        named = [(comparison.app, host, timestamp) for host in comparison.hosts for timestamp in comparison.timestamps]
        entries.append(
            {
                "id": comparison.id,
                "title": comparison.title,
                "page": f"comparisons/{comparison.id}.html",
                "n_held": sum(key in held for key in named),
                "n_named": len(named),
            }
        )
    return entries


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


def _key(row: Row) -> Key:
    return row["app"], row["host"], row["timestamp"]


def _by_campaign(rows: list[Row]) -> defaultdict[Key, list[Row]]:
    grouped: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[_key(row)].append(row)
    return grouped


def _state(campaign: Campaign) -> str:
    if campaign.is_open:
        return "open: runs may still be added"
    return "given up" if campaign.is_abandoned else "complete"
