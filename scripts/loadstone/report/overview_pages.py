"""Pages over all campaigns: start page, lists of campaigns and comparisons, any two series, data quality, methods."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from loadstone.analysis.caveats import CAVEATS, WEIGHTS
from loadstone.archive import Campaign, durable
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report import figures, findings, progress_page, reproducibility, series_data, site_layout
from loadstone.report.numbers import minute, rate_name
from loadstone.report.output import partials, run_map, site_context, template_text, write_page
from loadstone.report.queries import Queries, Row, in_order, querying
from loadstone.report.start_page import (
    OLDER,
    Entry,
    Key,
    by_campaign,
    campaign_entries,
    cards,
    comparison_entries,
    concluded,
    newest_complete,
    newest_result,
    write_index,
)
from loadstone.tables.layout import text
from loadstone.tables.schema import MADE_BY
from loadstone.text import counted

# --- data quality -----------------------------------------------------------------------------------------------------


SHOWN = 50  # problems, suggestions and cells with missing runs listed per campaign; beyond that their number is given
EXAMPLES = 5  # excluded runs named per reason
OUTSIDE = 50
_MOST_MARKS = 100_000  # runs of a site beyond which maps hold numbers instead of one mark per run

# State of a run (page_quality.sql) -> its mark, what a count of them is called, and what it means. The marks differ in
# shape, not in colour alone.
STATES = {
    "collected": ("■", "Valid, no tag suggested", "in all statistics"),
    "suggested": (
        "◆",
        "Valid, tag suggested",
        "in all statistics; see the suggestion",
    ),
    "excluded": ("◇", "Excluded", "not in any statistic"),
    "failed": ("✕", "Failed", "attempted, but without a result"),
    "missing": ("□", "Missing", "planned but never attempted"),
}
_MOST_REASONS = 3  # of exclusion, at the top
_WITH_PROBLEMS = ("suggested", "excluded", "failed", "missing")


def quality_context(queries: Queries, entries: Sequence[Mapping[str, Any]], outside: Sequence[str]) -> dict[str, Any]:
    """The variables of ``quality.html``; `entries` are those of `entries`."""
    exclusions = by_campaign(queries.rows("page_exclusions", shown=EXAMPLES))
    problems = by_campaign(queries.rows("page_problems", shown=SHOWN))
    missing = by_campaign(queries.rows("page_missing"))
    suggested = by_campaign(queries.rows("page_suggestions", shown=SHOWN))
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
        "most_excluded": _most_excluded(campaigns),
        "n_without_plan": sum(bool(entry["held"]) and entry["held"]["planned"] is None for entry in entries),
        "shown": SHOWN,
        "outside": outside[:OUTSIDE],
        "n_outside": len(outside),
    }


def _most_excluded(campaigns: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Row]]:
    """The reasons for which most runs are excluded, each with its campaign."""
    found = [(each, row) for each in campaigns for row in each["exclusions"]]
    return sorted(found, key=lambda pair: -pair[1]["n_runs"])[:_MOST_REASONS]


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


def _quality_text(total: Mapping[str, int], n_problems: int, n_suggestions: int) -> str:
    """What the start page says about the page of data quality."""
    has_gaps = total["excluded"] or total["failed"] or total["missing"]
    parts = [
        "lists why runs are excluded or missing" if has_gaps else "lists every run",
        f"names {counted(n_problems, 'problem')}" if n_problems else "",
        f"suggests {counted(n_suggestions, 'tag')}" if n_suggestions else "",
    ]
    *most, last = filter(None, parts)
    return f"{', '.join(most)} and {last}" if most else last


def traced(dumps: Sequence[Dump]) -> list[tuple[str, Dump]]:
    """Every trace dump with its name, newest first."""
    newest_first = sorted(
        dumps, key=lambda dump: (dump.saved_at or datetime.min.replace(tzinfo=UTC), dump), reverse=True
    )
    return [(text(dump.source), dump) for dump in newest_first]


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
    about, part = site_context(options, tables), site_layout.Part(reports, "index").begin()
    with querying(tables, list(campaigns)) as queries:
        tables_of = concluded(queries)
        entries = campaign_entries(queries, campaigns, variants, purposes or {}, tables_of)
        quality = quality_context(queries, entries, outside)
        shown = cards(queries, entries)
    listed = comparison_entries(comparisons, campaigns, variants, tables_of)
    is_open = any(campaign.is_open for campaign in campaigns) and progress_page.is_of_a_sweep(reports)
    shared = {
        **quality,
        "entries": entries,
        "cards": shown,
        "newest_keys": {card["entry"]["key"] for card in shown},
        "older": entries[:OLDER],
        "comparisons": [entry for entry in listed if entry["n_held"]],
        "absent": [entry for entry in listed if not entry["n_held"]],
        "dumps": traced(dumps),
        "n_incomplete": sum(entry["campaign"].is_open for entry in entries),
        "n_requests": sum(entry["held"]["n_requests"] for entry in entries if entry["held"]),
        "symbols": findings.SYMBOLS,
        "progress": progress_page.NAME if is_open else None,
        **about,
    }
    durable.remove_temporary(reports)
    progress_page.write_placeholder(reports, about)
    write_page(reports / "methods.html", "methods.html", {**methods_context(about), **about})
    for name in ("quality", "campaigns", "comparisons"):
        write_page(reports / f"{name}.html", f"{name}.html", shared)
    sources = _sources(shared["entries"], shared["comparisons"])
    compared = {
        "sources": sources,
        "statistics": series_data.STATISTICS,
        "data": series_data.page_data(sources, _first_compared(entries, sources)),
        **about,
    }
    write_page(reports / series_data.PAGE, "compare.html", compared)
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
    write_index(reports, about["site_title"], entries, shared["comparisons"])
    write_page(path, "index.html", shared | figures.link_preview(path, newest_result(entries, about["site_title"])))
    own = [reports / name for name in (*site_layout.OVER_ALL, site_layout.CRATE, site_layout.INDEX)]
    own += filter(Path.is_file, [reports / site_layout.START_PICTURE])
    part.finish(own, growing=[reports / progress_page.NAME])
    return path


def _sources(entries: Iterable[Mapping[str, Any]], comparisons: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Folder and name of every campaign and comparison with series, in the order of these entries."""
    found = [
        (
            f"campaigns/{entry['slug']}",
            f"{entry['campaign'].app} on {entry['campaign'].host}, {minute(entry['campaign'].timestamp)}",
        )
        for entry in entries
        if entry["held"]
    ]
    return found + [
        (f"comparisons/{each['declared'].id}", f"Comparison: {each['declared'].title}") for each in comparisons
    ]


def _first_compared(entries: Sequence[Entry], sources: Sequence[tuple[str, str]]) -> str | None:
    """The folder of the series that ``compare.html`` opens on: those of the newest complete campaign, if any."""
    if held := [entry for entry in entries if entry["held"]]:
        return f"campaigns/{newest_complete(held)['slug']}"
    return next((folder for folder, _ in sources), None)


def _files(names: Iterable[str]) -> set[str]:
    """The files of pages of these names, with their checksums and crates."""
    return {
        f"{name}{suffix}"
        for name in names
        for suffix in (".html", ".png", site_layout.CHECKSUMS_SUFFIX, reproducibility.CRATE_SUFFIX)
    }


_PAGES = ("campaigns", "comparisons", "variants", "traces")  # folders of pages with results
