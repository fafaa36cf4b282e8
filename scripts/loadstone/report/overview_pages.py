"""Pages over all campaigns: start page, lists of campaigns and comparisons, data quality, and methods."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from loadstone.analysis.caveats import CAVEATS, WEIGHTS
from loadstone.archive import Campaign, plan
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report import progress_page, reproducibility, site_layout
from loadstone.report.numbers import LOAD_MODELS, counted, distinct, rate_name
from loadstone.report.output import about_site, partials, template_text, write_page
from loadstone.report.queries import Questions, Row, asking, in_order
from loadstone.report.run_map import run_map
from loadstone.report.site_layout import slug
from loadstone.tables.layout import campaign_key, text
from loadstone.tables.schema import MADE_BY
from loadstone.text import load_unit, rate_text

# --- data quality -----------------------------------------------------------------------------------------------------


Key = tuple[str, str, str]

SHOWN = 50  # problems, suggestions and cells with missing runs listed per campaign; beyond that their number is given
EXAMPLES = 5  # excluded runs named per reason
OUTSIDE = 50
_MOST_MARKS = 100_000  # runs of a site beyond which maps hold numbers instead of one mark per run

# State of a run (page_quality.sql) -> its mark, what a count of them is called, and what it means. The marks differ in
# shape, not in colour alone.
STATES = {
    "collected": ("■", "Valid, no tag suggested", "has a valid result"),
    "suggested": (
        "◆",
        "Valid, a tag suggested",
        "has a valid result, and a tag is suggested for it or its cell",
    ),
    "excluded": ("◇", "Excluded", "has a result that is in no statistic"),
    "failed": ("✕", "Failed", "was tried and gave no result"),
    "missing": ("□", "Missing", "was planned and never tried"),
}
_WITH_PROBLEMS = ("suggested", "excluded", "failed", "missing")


def key_of(row: Row) -> Key:
    """The campaign of a row."""
    return row["app"], row["host"], row["timestamp"]


def quality_context(
    questions: Questions, entries: Sequence[Mapping[str, Any]], outside: Sequence[str]
) -> dict[str, Any]:
    """The variables of ``quality.html``; `entries` are those of `entries`."""
    exclusions = _by_campaign(questions.rows("page_exclusions", shown=EXAMPLES))
    problems = _by_campaign(questions.rows("page_problems", shown=SHOWN))
    missing = _by_campaign(questions.rows("page_missing"))
    suggested = _by_campaign(questions.rows("page_suggestions", shown=SHOWN))
    total = sum((entry["counts"] for entry in entries), Counter[str]())
    is_drawn = total.total() <= _MOST_MARKS
    campaigns = [
        {
            **entry,
            "map": _map(entry, is_drawn=is_drawn),
            "exclusions": [_exclusion(row, entry) for row in exclusions[entry["key"]]],
            "missing": in_order(missing[entry["key"]], entry["labels"]),
            "problems": in_order(problems[entry["key"]], entry["labels"]),
            "n_problems": _count(problems[entry["key"]], "n_problems"),
            "suggestions": in_order(suggested[entry["key"]], entry["labels"]),
            "n_suggestions": _count(suggested[entry["key"]], "n_suggestions"),
            "has_problems": any(entry["counts"][state] for state in _WITH_PROBLEMS),
        }
        for entry in entries
    ]
    n_problems, n_suggestions = (sum(each[name] for each in campaigns) for name in ("n_problems", "n_suggestions"))
    return {
        "states": STATES,
        "total": total,
        "quality_text": _quality_text(total, n_problems, n_suggestions),
        "campaigns": campaigns,
        "shown": SHOWN,
        "outside": outside[:OUTSIDE],
        "n_outside": len(outside),
    }


def _by_campaign(rows: list[Row]) -> defaultdict[Key, list[Row]]:
    grouped: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[key_of(row)].append(row)
    return grouped


def _count(rows: Sequence[Row], name: str) -> int:
    """A count that all rows of a campaign have."""
    return int(rows[0][name]) if rows else 0


def _exclusion(row: Row, entry: Mapping[str, Any]) -> Row:
    examples = [
        example | {"page": run_address(entry["page"], example) if example["shown"] else None}
        for example in in_order(row["examples"], entry["labels"])
    ]
    return row | {"examples": examples}


def run_address(page: str, run: Row) -> str:
    """The address at which a campaign's page shows one run."""
    chosen = {"rate": rate_name(run["rate"]), "variant": run["variant"], "run": run["run"]}
    return f"{page}#{urlencode(chosen, errors='backslashreplace')}"


def _map(entry: Mapping[str, Any], *, is_drawn: bool) -> dict[str, Any]:
    cells = {
        (cell["rate"], cell["variant"]): [(run["run"], run["state"]) for run in cell["runs"]] for cell in entry["cells"]
    }
    return run_map(cells, entry["labels"], {state: mark for state, (mark, *_) in STATES.items()}, is_drawn=is_drawn)


# --- start page and lists ---------------------------------------------------------------------------------------------


NEWEST = 6  # campaigns that the start page shows; the others appear when the reader searches


def campaign_entries(
    questions: Questions, campaigns: Sequence[Campaign], variants: Variants, purposes: Mapping[Key, str]
) -> list[dict[str, Any]]:
    """Every campaign, newest first: its runs by state, variants and loads, and the address of its page."""
    held = {key_of(row): row for row in questions.rows("page_campaigns")}
    cells = _by_campaign(questions.rows("page_quality"))
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
    all_declared = variants.declared.get(campaign.app, {}).keys() >= set(names)
    styles = distinct(variants.styles(campaign.app, names, [] if all_declared else plan.declared_variants(campaign)))
    models = row["load_models"] if row else []
    own = cells.get(key, [])
    return {
        "campaign": campaign,
        "key": key,
        "purpose": purposes.get(key),
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
        "counts": Counter(run["state"] for cell in own for run in cell["runs"]),
    }


def _rates(rates: Sequence[float]) -> str:
    texts = [rate_text(rate) for rate in rates]
    return f"{texts[0]} to {texts[-1]} in {len(texts)} steps" if len(texts) > 5 else ", ".join(texts)


def _quality_text(total: Mapping[str, int], n_problems: int, n_suggestions: int) -> str:
    """What the start page says about the page of data quality."""
    has_gaps = total["excluded"] or total["failed"] or total["missing"]
    parts = [
        "says why runs are excluded or missing" if has_gaps else "shows every run",
        f"names {counted(n_problems, 'problem')}" if n_problems else "",
        f"has {counted(n_suggestions, 'suggested tag')}" if n_suggestions else "",
    ]
    *most, last = filter(None, parts)
    return f"{', '.join(most)} and {last}" if most else last


def comparison_entries(comparisons: Sequence[Comparison], campaigns: Sequence[Campaign]) -> list[dict[str, Any]]:
    """Every declared comparison, with how many of its campaigns the archive holds; without any it has no page."""
    held = {(campaign.app, campaign.host, campaign.timestamp) for campaign in campaigns}
    return [
        {
            "declared": comparison,
            "n_held": sum(key in held for key in product([comparison.app], comparison.hosts, comparison.timestamps)),
            "n_named": len(comparison.hosts) * len(comparison.timestamps),
        }
        for comparison in comparisons
    ]


def traced(dumps: Sequence[Dump]) -> list[tuple[str, Dump]]:
    """Every trace dump with its name, newest first."""
    newest_first = sorted(
        dumps, key=lambda dump: (dump.saved_at or datetime.min.replace(tzinfo=UTC), dump), reverse=True
    )
    return [(text(dump.source), dump) for dump in newest_first]


def _state(campaign: Campaign) -> str:
    if campaign.is_open:
        return "open: runs may still be added"
    if campaign.is_abandoned:
        return "complete, but its extension was given up" if campaign.is_completed else "given up"
    return "complete"


# --- methods ----------------------------------------------------------------------------------------------------------


_FOLDER = "methods"
# The parts to read first; the others follow by name.
FIRST_METHODS = ("words", "exclusion", "percentiles", "intervals", "averages", "pooled")
_SECTION = re.compile(r'<section id="([^"]+)".*?<h2[^>]*>(.*?)</h2>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def methods_context(about: dict[str, Any]) -> dict[str, Any]:
    """The variables of ``methods.html``: its parts, and their headings."""
    names = sorted(partials(_FOLDER), key=_place_of_part)
    declared = {"claims": list(CAVEATS.values()), "weights": WEIGHTS, "made_by": MADE_BY}
    parts = [template_text(name, {**declared, **about}) for name in names]
    return {"parts": parts, "contents": [entry for part in parts for entry in _contents(part)]}


def _place_of_part(name: str) -> tuple[int, str]:
    topic = name.removeprefix(f"{_FOLDER}/").removesuffix(".html")
    return FIRST_METHODS.index(topic) if topic in FIRST_METHODS else len(FIRST_METHODS), name


def _contents(part: Markup) -> list[tuple[str, str]]:
    found = _SECTION.findall(str(part))
    return [(identifier, unescape(_TAG.sub("", heading)).strip()) for identifier, heading in found]


def build_index(
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    options: Mapping[str, Any],
    *,
    comparisons: Sequence[Comparison] = (),
    purposes: Mapping[Key, str] | None = None,
    outside: Sequence[str] = (),
    dumps: Sequence[Dump] = (),
) -> Path:
    """Write the pages over all campaigns, ``index.html`` last; pages of other campaigns are removed.

    Campaigns that are not in the tables yet are listed as such. `comparisons` are all declared ones; those without any
    of these campaigns have no page. `purposes` are the catalogue's, by campaign; `outside` names what belongs to no
    campaign of the archive or of the catalogue.
    """
    about, part = about_site(options, tables), site_layout.Part(reports, "index").begin()
    with asking(tables, list(campaigns)) as questions:
        entries = campaign_entries(questions, campaigns, variants, purposes or {})
        quality = quality_context(questions, entries, outside)
    compared = comparison_entries(comparisons, campaigns)
    is_open = any(campaign.is_open for campaign in campaigns) and progress_page.is_of_a_sweep(reports)
    shared = {
        **quality,
        "entries": entries,
        "comparisons": [entry for entry in compared if entry["n_held"]],
        "absent": [entry for entry in compared if not entry["n_held"]],
        "dumps": traced(dumps),
        "n_requests": sum(entry["held"]["n_requests"] for entry in entries if entry["held"]),
        "newest": NEWEST,
        "progress": progress_page.NAME if is_open else None,
        **about,
    }
    progress_page.write_placeholder(reports, about)
    write_page(reports / "methods.html", "methods.html", {**methods_context(about), **about})
    for name in ("quality", "campaigns", "comparisons"):
        write_page(reports / f"{name}.html", f"{name}.html", shared)
    path = reports / "index.html"
    present = {
        "campaigns": {entry["slug"] for entry in entries},
        "comparisons": {entry["declared"].id for entry in shared["comparisons"]},
        "traces": {dump.slug for dump in dumps},
    }
    for kind, names in present.items():
        site_layout.remove_others(reports / kind, names | _files(names))
        site_layout.remove_others(reports / "figures" / kind, names, are_figures=True)
    summary = reproducibility.About(
        about["site_title"], "Load-test results with their evidence and conclusions.", campaigns, options
    )
    found = filter(site_layout.is_of_site, (page for folder in _PAGES for page in (reports / folder).glob("*.html")))
    reproducibility.write_site_crate(reports, summary, (page.relative_to(reports).as_posix() for page in found))
    write_page(path, "index.html", shared)
    own = [reports / name for name in (*site_layout.OVER_ALL, site_layout.CRATE)]
    part.finish(own, growing=[reports / progress_page.NAME])
    return path


def _files(names: Iterable[str]) -> set[str]:
    """The files of pages of these names, with their checksums and crates."""
    return {
        f"{name}{suffix}"
        for name in names
        for suffix in (".html", site_layout.CHECKSUMS_SUFFIX, reproducibility.CRATE_SUFFIX)
    }


_PAGES = ("campaigns", "comparisons", "variants", "traces")  # folders of pages with results
