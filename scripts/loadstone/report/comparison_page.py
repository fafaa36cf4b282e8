"""What a comparison's page says: its figures by three averages, what they rest on, and what was left out and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.archive import Campaign, slug
from loadstone.comparisons import ALLOWANCES, Comparison
from loadstone.report import charts, page_data
from loadstone.report.campaign_page import LOAD_MODELS, SHOWN, distinct, interval, latency_in, when
from loadstone.report.numbers import Unit, counted, page_unit, rate_text
from loadstone.report.queries import Questions, Row
from loadstone.tables.compare import Selection, select
from loadstone.variants import Style, Variants

CHARTS = ("latency", "success", "failed", "errors", "config")
STATISTICS = {
    "summaries": "Mean of runs",
    "raw": "Mean of requests",
    "p50": "Median",
    "p90": "p90",
    "p99": "p99",
}
SPREADS = {
    "summaries": "± one standard deviation of run means",
    "raw": "± one standard deviation of all requests",
}
ERRORS = {
    "503": "HTTP status code 503",
    "0": "No complete answer (code 0)",
    "other": "Other codes than 200, 503 and 0",
}


@dataclass(frozen=True)
class ComparisonPage:
    """Everything a comparison's page shows, as the tables hold it. `campaigns` are those that the archive holds."""

    comparison: Comparison
    campaigns: Sequence[Campaign]
    selection: Selection
    rows: list[Row]
    unit: Unit
    styles: list[Style]

    @property
    def rates(self) -> list[float]:
        return sorted({row["rate"] for row in self.rows})


def gather(
    questions: Questions, comparison: Comparison, campaigns: Sequence[Campaign], variants: Variants
) -> ComparisonPage:
    """Ask for everything. `questions` must be about these campaigns, those of the comparison that the archive holds."""
    rows = questions.rows("page_comparison", comparison=comparison.id)
    present = {row["variant"] for row in rows}
    return ComparisonPage(
        comparison=comparison,
        campaigns=campaigns,
        selection=select(comparison, questions.connection),
        rows=rows,
        unit=page_unit(row["p50_ns"] or row["vegeta_summaries_mean_ns"] for row in rows),
        styles=distinct(variants.styles(comparison.app, present)),
    )


def context(page: ComparisonPage) -> dict[str, Any]:
    """The variables of ``comparison.html``."""
    order = {style.name: position for position, style in enumerate(page.styles)}
    selection, specifications = page.selection, charts.specifications(page.styles, page.unit, page.rates)
    return {
        "comparison": page.comparison,
        "title": page.comparison.title,
        "heading": page.comparison.title,
        "lead": f"A comparison of campaigns: {page.comparison.app} on {' and '.join(page.comparison.hosts)}",
        "facts": facts(page),
        "rests_on": rests_on(page),
        "refusals": selection.refusals,
        "allowed": [ALLOWANCES[name] for name in sorted(page.comparison.allow)],
        "campaigns": _campaigns(page),
        "excluded": selection.excluded[:SHOWN],
        "n_excluded": len(selection.excluded),
        "left_out": sorted(Counter(run["pattern"] for run in selection.left_out).items()),
        "n_left_out": len(selection.left_out),
        "partial": any(row["n_runs"] != row[f"{method}_n_runs"] for row in page.rows for method in _METHODS),
        "unit": page.unit,
        "styles": page.styles,
        "positions": order,
        "labels": {style.name: style.label for style in page.styles},
        "statistics": STATISTICS,
        "rows": sorted(page.rows, key=lambda row: (row["rate"], order[row["variant"]])),
        "error_classes": [item for item in ERRORS.items() if any(row[_fraction(item[0])] for row in page.rows)],
        "latency": latency_in(page.unit),
        "interval": lambda row, name: interval(row, name, page.unit) if row[f"{name}_ns"] is not None else "",
        "data": script_data(page),
        "specs": {name: specifications[name] for name in CHARTS},
    }


_METHODS = ("vegeta_summaries", "all_raw_data")


def _fraction(name: str) -> str:
    return f"error_{name}_fraction"


def facts(page: ComparisonPage) -> list[tuple[str, str]]:
    """Headline facts as (term, description)."""
    rows, rates = page.rows, [rate_text(rate) for rate in page.rates]
    models = {run["load_model"] for run in page.selection.counting}
    runs = sorted({row["n_runs"] for row in rows})
    found = [
        ("Application", page.comparison.app),
        ("Host", ", ".join(page.comparison.hosts)),
        ("Campaigns", f"{len(page.campaigns)} of {len(page.comparison.timestamps) * len(page.comparison.hosts)} named"),
        ("Load model", ", ".join(sorted(LOAD_MODELS.get(model, str(model)) for model in models))),
        ("Load", f"{rates[0]} to {rates[-1]} requests/s" if len(rates) > 1 else "".join(rates)),
        ("Runs per load and variant", " to ".join(f"{number:,}" for number in sorted({*runs[:1], *runs[-1:]}))),
        ("Requests", f"{sum(row['n_requests'] or 0 for row in rows):,}" if rows else ""),
    ]
    return [(term, text) for term, text in found if text]


def rests_on(page: ComparisonPage) -> str:
    """How many runs the page's figures rest on, in words."""
    selection = page.selection
    if selection.refusals:
        return "No figure is given."
    evidence = Counter(run["evidence"] for run in selection.counting)
    text = f"The figures rest on {counted(len(selection.counting), 'run')}; {len(selection.excluded):,} left out"
    if evidence["summary"]:
        text += f"; of {counted(evidence['summary'], 'run')} there is only what the load generator reported"
    return f"{text}."


def _campaigns(page: ComparisonPage) -> list[dict[str, Any]]:
    """Every campaign that the comparison names, with what it brings."""
    held = set(page.campaigns)
    counts = {
        name: Counter((run["host"], run["timestamp"]) for run in runs)
        for name, runs in (
            ("counting", page.selection.counting),
            ("excluded", page.selection.excluded),
            ("left_out", page.selection.left_out),
        )
    }
    root = page.campaigns[0].root if page.campaigns else None
    named = page.comparison.campaigns(root) if root else []
    return [
        {
            "campaign": campaign,
            "when": when(campaign),
            "page": f"../campaigns/{slug(campaign)}.html" if campaign in held else None,
        }
        | {name: count[campaign.host, campaign.timestamp] for name, count in counts.items()}
        for campaign in named
        # With several hosts, not every timestamp is meant for each.
        if campaign in held or len(page.comparison.hosts) == 1
    ]


def script_data(page: ComparisonPage) -> dict[str, Any]:
    """What the page's script reads."""
    return {
        "folder": page.comparison.id,
        "unit": page.unit.symbol,
        "variants": page_data.variants(page.styles),
        "rates": [],
        "rate": None,
        "statistic": "p50" if any(row["p50_ns"] is not None for row in page.rows) else "summaries",
        "statistics": STATISTICS,
        "spreads": SPREADS,
        "cells": [_cell(row, page.unit) for row in page.rows],
        "errors": [
            {
                "rate": row["rate"],
                "variant": row["variant"],
                "error_class": name,
                "share": row[_fraction(name)],
                "share_std": row[f"{_fraction(name)}_std"],
            }
            for row in page.rows
            for name in ERRORS
            if row[_fraction(name)]
        ],
    }


def _cell(row: Row, unit: Unit) -> dict[str, Any]:
    means = {
        "summaries": (row["vegeta_summaries_mean_ns"], row["vegeta_summaries_std_ns"]),
        "raw": (row["all_raw_data_mean_ns"], row["all_raw_data_std_ns"]),
    }
    ok_means = {
        "summaries": (row["ok_run_mean_ns"], row["ok_run_std_ns"]),
        "raw": (row["all_raw_data_ok_mean_ns"], row["all_raw_data_ok_std_ns"]),
    }
    return page_data.cell(row, unit, means, ok_means)
