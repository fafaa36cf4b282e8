"""What a campaign page says: its cells, errors and runs from the tables, and its plan from the archive's metadata."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loadstone.archive import Campaign
from loadstone.metadata import Metadata
from loadstone.report import charts, known, measured, page_data
from loadstone.report.measured import Described
from loadstone.report.numbers import Unit, counted, duration, joined, page_unit, rate_name, rate_text, significant, span
from loadstone.report.queries import Questions, Row
from loadstone.variants import Style, Variants

SHOWN = 200  # problems and left-out runs listed one by one; beyond that their number is given

STATISTICS = {"mean": "Mean", "p50": "Median", "p90": "90th percentile", "p99": "99th percentile"}
LOAD_MODELS = {
    "open": "open: requests sent on a clock",
    "closed": "closed: each user waits for the answer",
    "serial": "serial: one request after another",
}
ERRORS = {
    "http_503": "HTTP 503, service unavailable",
    "http_5xx": "HTTP 5xx other than 503",
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
    streams: list[Row]
    put_back: list[Row]  # cells and errors with the left-out runs put back; empty where none is left out
    put_back_errors: list[Row]
    suggestions: list[Row]
    planned: int | None
    planned_collected: int | None
    described: list[Described]
    measured: Mapping[str, Any]

    @property
    def metadata(self) -> list[Metadata]:
        return [cell.metadata for cell in self.described]

    @property
    def loadable_rates(self) -> list[float]:
        """Rates at which any run left results, and which so have a data file."""
        return sorted({run["rate"] for run in self.runs if run["rate"] is not None})

    @property
    def excluded(self) -> list[Row]:
        return [run for run in self.runs if run["excluded"]]


def gather(questions: Questions, campaign: Campaign, variants: Variants) -> CampaignPage:
    """Ask for everything but what is loaded per rate. `questions` must be about this campaign alone."""
    cells = questions.rows("page_cells", put_back=False)
    put_back = questions.rows("page_cells", put_back=True)
    if not any(cell["n_excluded"] for cell in put_back):
        put_back = []
    overview = next(iter(questions.rows("page_campaigns")), None)
    unit = page_unit(cell["p50_ns"] for cell in cells or put_back)
    styles = distinct(variants.styles(campaign.app, overview["variants"] if overview else ()))
    runs = questions.rows("page_runs")
    described = measured.describe(campaign, variants)
    return CampaignPage(
        campaign=campaign,
        unit=unit,
        styles=styles,
        rates=overview["rates"] if overview else [],
        cells=cells,
        errors=questions.rows("page_errors", put_back=False),
        codes=questions.rows("page_codes"),
        runs=runs,
        missing=questions.rows("page_missing"),
        problems=questions.rows("page_problems", shown=SHOWN),
        streams=questions.rows("page_streams"),
        put_back=put_back,
        put_back_errors=questions.rows("page_errors", put_back=True) if put_back else [],
        suggestions=questions.rows("page_suggestions", shown=SHOWN),
        planned=overview["planned"] if overview else None,
        planned_collected=overview["planned_collected"] if overview else None,
        described=described,
        measured=measured.context(
            questions,
            described,
            {style.name: style.label for style in styles},
            unit,
            open_load=any(run["load_model"] == "open" for run in runs),
        ),
    )


def context(page: CampaignPage, name: str, variants: Variants, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of ``campaign.html``; `entry` is what the catalogue says of the campaign."""
    labels = {style.name: style.label for style in page.styles}
    order = {style.name: position for position, style in enumerate(page.styles)}
    people_say = known.context(page.campaign, page.runs, page.suggestions, variants, entry)
    return {**people_say, **page.measured} | {
        "title": f"{page.campaign.app} on {page.campaign.host}, {when(page.campaign)}",
        "heading": f"{page.campaign.app} on {page.campaign.host}",
        "campaign": page.campaign,
        "when": when(page.campaign),
        "facts": facts(page),
        "rests_on": rests_on(page),
        "unit": page.unit,
        "styles": page.styles,
        "positions": order,
        "labels": labels,
        "statistics": {"mean": "Mean", "p50": "Median", "p90": "p90", "p99": "p99"},
        "rates": [(rate_name(rate), rate_text(rate)) for rate in page.loadable_rates],
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
        "streams": page.streams,
        "latency": latency_in(page.unit),
        "interval": lambda cell, name: interval(cell, name, page.unit),
        "data": script_data(page, name),
        "specs": charts.specifications(page.styles, page.unit, page.rates),
    }


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


def distinct(styles: list[Style]) -> list[Style]:
    """The same styles; variants that share a label are told apart by their name."""
    labels = [style.label for style in styles]
    return [
        Style(style.name, f"{style.label} ({style.name})", style.colour) if labels.count(style.label) > 1 else style
        for style in styles
    ]


def script_data(page: CampaignPage, name: str) -> dict[str, Any]:
    """What the page's script reads."""
    rates = [rate_name(rate) for rate in page.loadable_rates]
    return {
        "folder": name,
        "unit": page.unit.symbol,
        "variants": page_data.variants(page.styles),
        "rates": rates,
        "rate": rates[len(rates) // 2] if rates else None,
        "statistic": "p50",
        "statistics": STATISTICS,
        "spreads": {"mean": "± one standard deviation of run means"},
        "cells": [_cell(cell, page.unit) for cell in page.cells],
        "errors": page.errors,
        "put_back": {"cells": [_cell(cell, page.unit) for cell in page.put_back], "errors": page.put_back_errors}
        if page.put_back
        else None,
    }


def _cell(cell: Row, unit: Unit) -> dict[str, Any]:
    means = {"mean": (cell["run_mean_ns"], cell["run_std_ns"])}
    ok_means = {"mean": (cell["ok_run_mean_ns"], cell["ok_run_std_ns"])}
    return page_data.cell(cell, unit, means, ok_means)


def latency_in(unit: Unit) -> Any:
    """A function for templates: a latency in ns as text in the page's unit, without the symbol."""
    return lambda latency_ns: significant(unit.of(latency_ns))


def when(campaign: Campaign) -> str:
    """``21 November 2026, 11:30 +00:00``; the folder's own text where that is no timestamp."""
    instant = campaign.instant
    if instant.year == 1:
        return campaign.timestamp
    return f"{instant.day} {instant:%B %Y, %H:%M} {_offset(instant)}"


def _offset(instant: datetime) -> str:
    text = instant.isoformat()[-6:]
    return "UTC" if text == "+00:00" else f"UTC{text}"


def rests_on(page: CampaignPage) -> str:
    """How many of the planned runs the page's figures rest on, in words."""
    # A run of which only the load generator's report is left counts in comparisons; here it can't.
    reported = sum(run["evidence"] == "summary" and not run["excluded"] for run in page.runs)
    counting = len(page.runs) - len(page.excluded) - reported
    left_out = f"{len(page.excluded):,} left out"
    if reported:
        left_out += (
            f"; {counted(reported, 'run')} of which only the load generator's report is there, in no figure here"
        )
    if page.planned is None:
        return f"{counted(counting, 'run')}; {left_out}. How many were planned was not recorded."
    text = f"{page.planned_collected or 0:,} of {counted(page.planned, 'planned run')} collected; {left_out}"
    return (
        f"{text}."
        if not page.excluded and not reported
        else f"{text}, so the figures rest on {counted(counting, 'run')}."
    )


def facts(page: CampaignPage) -> list[tuple[str, str]]:
    """Headline facts as (term, description); what neither tables nor metadata say is not listed."""
    runs, cells = page.runs, page.metadata
    models = joined(LOAD_MODELS.get(run["load_model"], run["load_model"]) for run in runs)
    labels = {f"{key}: {value}" for run in runs for key, value in (run["labels"] or {}).items()}
    per_cell = sorted({cell["n_runs"] for cell in page.cells})
    found = [
        ("Application", page.campaign.app),
        ("Host", page.campaign.host),
        ("Opened", f"{when(page.campaign)} ({page.campaign.timestamp})"),
        ("Load model", models),
        ("Load", f"{span(page.rates)} requests/s" if page.rates else ""),
        ("Runs per cell", span(per_cell)),
        ("Requests", f"{sum(run['requests'] or 0 for run in runs):,}" if runs else ""),
        ("Duration of a run", _durations(run["duration_s"] for run in runs)),
        ("Warm-up", _warmup(cells)),
        ("Replicas", joined(str(run["replicas"]) for run in runs if run["replicas"] is not None)),
        ("Labels", ", ".join(sorted(labels))),
    ]
    return [(term, text) for term, text in found if text]


def _durations(seconds: Iterable[float | None]) -> str:
    known = sorted({value for value in seconds if value is not None})
    if len(known) > 3:
        return f"{duration(known[0])} to {duration(known[-1])}"
    return ", ".join(map(duration, known))


def _warmup(cells: list[Metadata]) -> str:
    lengths = {cell.warmup_duration_s for cell in cells}
    if not lengths - {None, 0.0}:
        return "none" if lengths == {0.0} else ""
    rates = span(cell.warmup_rate for cell in cells)
    lasting = " or ".join(duration(length) for length in sorted(lengths - {None}, key=float))  # type: ignore[arg-type]
    return f"{lasting} at {rates} requests/s" if rates else lasting


_WIDEST = 100


def interval(cell: Row, name: str, unit: Unit) -> str:
    """The 95 % interval of one percentile as text, or why there is none."""
    low, high = unit.of(cell[f"{name}_low_ns"]), unit.of(cell[f"{name}_high_ns"])
    if not cell["n_requests"]:
        return ""
    if not cell[f"{name}_estimable"]:
        return "too few requests"
    if low is None or high is None:
        return "one run"
    # From a few runs that differ wildly; no reader could do anything with such a pair of numbers.
    return "too few runs" if high > _WIDEST * low else f"{significant(low)} – {significant(high)}"
