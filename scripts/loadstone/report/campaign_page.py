"""What a campaign page says: its cells, errors and runs from the tables, and its plan from the archive's metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.archive import Campaign, plan
from loadstone.archive.metadata import Metadata
from loadstone.archive.run_records import Failure, RunRecord
from loadstone.config.variants import Style, Variants
from loadstone.readers import load_generators
from loadstone.report import (
    annotations,
    causes_section,
    chart_rows,
    charts,
    clock_resolution,
    conclusions,
    distributions_section,
    incidents_section,
    measurement,
    reported_section,
    resources_section,
    run_findings,
    senders_section,
    variant_page,
)
from loadstone.report.campaign_facts import facts, rests_on
from loadstone.report.charts import Load
from loadstone.report.conclusions import Conclusions
from loadstone.report.distributions_section import Distributions
from loadstone.report.incidents_section import Incidents
from loadstone.report.labels import SHOWN, distinct, interval, latency_in
from loadstone.report.measurement import Described
from loadstone.report.numbers import Unit, page_unit, rate_name, when
from loadstone.report.queries import Questions, Row, in_order
from loadstone.report.reported_section import Reported
from loadstone.report.run_findings import RunFindings
from loadstone.text import load_unit, rate_text

STATISTICS = {"mean": "Mean", "p50": "Median", "p90": "90th percentile", "p99": "99th percentile"}
ERRORS = {
    "http_503_by_proxy": "HTTP 503 by a proxy",
    "http_503_by_service": "HTTP 503 by the service",
    "http_503": "HTTP 503, not told by whom",
    "http_5xx_by_proxy": "HTTP 5xx other than 503 by a proxy",
    "http_5xx_by_service": "HTTP 5xx other than 503 by the service",
    "http_5xx": "HTTP 5xx other than 503, not told by whom",
    "http_4xx_by_proxy": "HTTP 4xx by a proxy",
    "http_4xx": "HTTP 4xx",
    "http_other": "Other HTTP codes",
    "timeout": "No answer in time",
    "refused": "Connection refused",
    "reset": "Connection reset or closed",
    "dns": "Name not resolved",
    "tls": "TLS failed",
    "client_limit": "Limit of the load generator's machine",
    "no_response": "No response, cause unknown",
}


@dataclass(frozen=True)
class CampaignPage:
    """Everything a campaign page shows, as the tables and the metadata hold it."""

    campaign: Campaign
    unit: Unit
    styles: list[Style]
    rates: list[float]
    cells: list[Row]
    errors: list[Row]
    codes: list[Row]  # other than 200 that count as success
    runs: list[Row]
    missing: list[Row]
    problems: list[Row]
    failures: list[Row]
    streams: list[Row]
    resources: list[Row]
    incidents: Incidents
    put_back: list[Row]  # cells and errors with the left-out runs put back; empty where none is left out
    put_back_errors: list[Row]
    suggestions: list[Row]
    planned: int | None
    planned_collected: int | None
    described: list[Described]
    measured: Mapping[str, Any]
    reported: Reported
    run_findings: RunFindings
    causes: Mapping[str, Any]
    senders: dict[str, Any]
    concluded: Conclusions
    distributions: Distributions

    @property
    def metadata(self) -> list[Metadata]:
        return [cell.metadata for cell in self.described]

    @property
    def loadable_rates(self) -> list[float]:
        """Rates at which any run left requests or samples, and which so have a data file."""
        sampled = {row["rate"] for row in self.resources}
        return sorted(sampled | set(self.raw_rates))

    @property
    def raw_rates(self) -> list[float]:
        """Rates at which any run left requests."""
        return sorted({run["rate"] for run in self.runs if run["evidence"] == "raw" and run["requests"]})

    @property
    def load_unit(self) -> str:
        """What the numbers of loads count."""
        return load_unit(run["load_model"] for run in self.runs)

    @property
    def excluded(self) -> list[Row]:
        return [run for run in self.runs if run["excluded"]]


def gather(questions: Questions, campaign: Campaign, variants: Variants, confidence: float) -> CampaignPage:
    """Ask for everything but what is loaded per rate. `questions` must be about this campaign alone.

    `confidence` is that of all intervals.
    """
    cells = clock_resolution.rounded(questions.rows("page_cells", put_back=False))
    put_back = clock_resolution.rounded(questions.rows("page_cells", put_back=True))
    if not any(cell["n_excluded"] for cell in put_back):
        put_back = []
    overview = next(iter(questions.rows("page_campaigns")), None)
    reported = reported_section.gather(questions)
    unit = page_unit([cell["p50_ns"] for cell in cells or put_back] or [row["p50_ns"] for row in reported.rows])
    described = measurement.describe(campaign, variants)
    planned = plan.variants_of_cells((cell.folder, cell.rate, cell.metadata) for cell in described)
    styles = distinct(variants.styles(campaign.app, overview["variants"] if overview else (), planned))
    names = [style.name for style in styles]
    runs = in_order(questions.rows("page_runs"), names)
    failures = in_order(questions.rows("page_failures", shown=SHOWN), names)
    return CampaignPage(
        campaign=campaign,
        unit=unit,
        styles=styles,
        rates=overview["rates"] if overview else [],
        cells=cells,
        errors=questions.rows("page_errors", put_back=False),
        codes=questions.rows_of_requests("page_codes"),
        runs=runs,
        missing=in_order(questions.rows("page_missing"), names),
        problems=in_order(questions.rows("page_problems", shown=SHOWN), names),
        failures=sorted(failures, key=lambda row: bool(row["collected"])),
        streams=questions.rows("page_streams"),
        resources=resources_section.gather(questions),
        incidents=incidents_section.gather(questions),
        put_back=put_back,
        put_back_errors=questions.rows("page_errors", put_back=True) if put_back else [],
        suggestions=in_order(questions.rows("page_suggestions", shown=SHOWN), names),
        planned=overview["planned"] if overview else None,
        planned_collected=overview["planned_collected"] if overview else None,
        described=described,
        measured=measurement.context(
            questions,
            described,
            {style.name: style.label for style in styles},
            unit,
            open_load=not runs or any(run["load_model"] == "open" for run in runs),
        ),
        reported=reported,
        run_findings=run_findings.gather(questions),
        causes=causes_section.context(questions, {style.name: style.label for style in styles}),
        senders=senders_section.context(questions),
        concluded=conclusions.gather(questions, confidence),
        distributions=distributions_section.gather(questions),
    )


def context(page: CampaignPage, name: str, variants: Variants, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of ``campaign.html``; `entry` is what the catalogue says of the campaign."""
    labels = {style.name: style.label for style in page.styles}
    order = {style.name: position for position, style in enumerate(page.styles)}
    people_say = annotations.context(page.campaign, page.runs, page.suggestions, variants, entry)
    recorded = [record for cell in page.described for record in cell.records.values()]
    happened = incidents_section.context(page.incidents, recorded, labels)
    sections = {
        **conclusions.context(page.concluded, page.styles, page.unit, clock_resolution.step(page.runs, page.unit)),
        **people_say,
        **page.measured,
        **resources_section.context(page.resources, labels),
        **happened,
        **run_findings.context(page.run_findings, labels, page.unit, _records(page.described)),
        **page.causes,
        **page.senders,
        **reported_section.context(page.reported, labels, page.unit),
    }
    load = Load(tuple(page.rates), page.load_unit)
    return sections | {
        "title": f"{page.campaign.app} on {page.campaign.host}, {when(page.campaign)}",
        "heading": f"{page.campaign.app} on {page.campaign.host}",
        "campaign": page.campaign,
        "when": when(page.campaign),
        "facts": facts(page),
        "rests_on": rests_on(page),
        "incidents_notice": incidents_section.notice(happened, len(page.runs)),
        "unit": page.unit,
        "styles": page.styles,
        "variant_pages": variant_page.pages_of(page.campaign.app, order),
        "positions": order,
        "labels": labels,
        "statistics": {"mean": "Mean", "p50": "Median", "p90": "p90", "p99": "p99"},
        "load_unit": page.load_unit,
        "rates": [(rate_name(rate), rate_text(rate)) for rate in page.raw_rates],
        "sampled_rates": [(rate_name(rate), rate_text(rate)) for rate in page.loadable_rates],
        "curve_rates": distributions_section.choices(page.distributions),
        "timed": any(load_generators.is_timed(run["generator"]) for run in page.runs if run["evidence"] == "raw"),
        "reported_chart": reported_section.has_loads(page.reported),
        "codes_told": not page.cells or any(cell["error_fraction"] is not None for cell in page.cells),
        "variant_choices": [(style.name, style.label) for style in page.styles],
        "cells": sorted(page.cells, key=lambda cell: (cell["rate"], order[cell["variant"]])),
        "put_back": beside(page, order),
        "shown": SHOWN,
        "error_classes": error_classes([*page.errors, *page.put_back_errors]),
        "excluded": page.excluded[:SHOWN],
        "n_excluded": len(page.excluded),
        "missing": page.missing,
        "problems": page.problems,
        "codes": page.codes,
        "failures": [row | {"said": _said(row)} for row in page.failures],
        "streams": page.streams,
        "latency": latency_in(page.unit),
        "spread": lambda cell, name: clock_resolution.spread(cell[name], page.unit, cell["resolution_ns"]),
        "interval": lambda cell, name: interval(cell, name, page.unit),
        "data": script_data(page, name),
        "specs": charts.specifications(page.styles, page.unit, load),
    }


def _records(cells: Sequence[Described]) -> dict[tuple[float, str, int], RunRecord]:
    return {(cell.rate, cell.folder, number): record for cell in cells for number, record in cell.records.items()}


def _said(failure: Row) -> Failure:
    return Failure(failure["failed_at"], failure["phase"], failure["error"], tuple(failure["evidence"] or ()))


def error_classes(errors: list[Row]) -> list[tuple[str, str]]:
    """The classes that occurred, the most frequent first, each with its name for readers."""
    weight: dict[str, float] = {}
    for error in errors:
        weight[error["error_class"]] = weight.get(error["error_class"], 0.0) + error["share"]
    return [(name, ERRORS.get(name, name)) for name in sorted(weight, key=lambda name: -weight[name])]


def beside(page: CampaignPage, order: Mapping[str, int]) -> list[tuple[Row | None, Row]]:
    """Cells that left runs out: as they count, if any run does, and with those runs put back."""
    counting = {(cell["rate"], cell["variant"]): cell for cell in page.cells}
    changed = [cell for cell in page.put_back if cell["n_excluded"]]
    changed.sort(key=lambda cell: (cell["rate"], order[cell["variant"]]))
    return [(counting.get((cell["rate"], cell["variant"])), cell) for cell in changed]


def script_data(page: CampaignPage, name: str) -> dict[str, Any]:
    """What the page's script reads; ``charts`` has the rows of each chart."""
    rates = [rate_name(rate) for rate in page.loadable_rates]
    reported = chart_rows.reported(reported_section.chart_rows(page.reported, page.unit), page.styles, "load")
    shown = _across_load(page, page.cells, page.errors)
    put_back = _across_load(page, page.put_back, page.put_back_errors)
    return {
        "folder": name,
        "resources": resources_section.choices(page.resources),
        **conclusions.choices(page.concluded),
        "load_unit": page.load_unit,
        "step": clock_resolution.step(page.runs, page.unit),
        "unit": page.unit.symbol,
        "variants": chart_rows.variants(page.styles),
        "rates": rates,
        "rate": rates[len(rates) // 2] if rates else None,
        "statistic": "p50",
        "statistics": STATISTICS,
        "figures": {name: name for name in STATISTICS},
        "spreads": {"mean": "± one standard deviation of run means"},
        "charts": {
            **shown,
            **chart_rows.of_runs(page.distributions, page.styles, page.unit),
            **chart_rows.of_conclusions(
                page.concluded, page.styles, page.unit, clock_resolution.step(page.runs, page.unit)
            ),
            "reported": reported,
            "percentiles": chart_rows.reported(reported_section.histogram_rows(page.reported, page.unit), page.styles),
            "usage": chart_rows.resource_usage(resources_section.chart_rows(page.resources), page.styles),
        },
        "logarithmic": chart_rows.logarithmic(shown["latency"], reported),
        "put_back": {"charts": put_back, "logarithmic": chart_rows.logarithmic(put_back["latency"], reported)}
        if page.put_back
        else None,
    }


def _across_load(page: CampaignPage, cells: Sequence[Row], errors: Sequence[Row]) -> dict[str, Any]:
    return chart_rows.across_load(
        cells,
        errors,
        page.styles,
        page.unit,
        page.concluded,
        means=lambda cell: {"mean": (cell["run_mean_ns"], cell["run_std_ns"])},
        ok_means=lambda cell: {"mean": (cell["ok_run_mean_ns"], cell["ok_run_std_ns"])},
    )
