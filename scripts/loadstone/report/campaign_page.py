"""The page of a campaign: what it shows, from the tables and from the archive's metadata."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.analysis.conclusions import scope_of_campaign
from loadstone.archive import Campaign, plan
from loadstone.archive.metadata import Metadata
from loadstone.archive.run_records import Failure
from loadstone.archive.stages import TEST, WARMUP, Stage
from loadstone.config.variants import Variants
from loadstone.percentiles import LATENCIES, SHOWN_PERCENTILES, label, title
from loadstone.readers import load_generators
from loadstone.report import (
    chart_rows,
    conclusions,
    figures,
    incidents,
    measurement,
    numbers,
    rate_data,
    reported_section,
    reproducibility,
    resources_section,
    run_findings,
    series_data,
    site_layout,
    variant_page,
)
from loadstone.report.charted_page import ChartedPage
from loadstone.report.measurement import Described
from loadstone.report.numbers import (
    LOAD_MODELS,
    RUN_MEANS,
    SHOWN,
    distinct,
    duration,
    joined,
    moment,
    page_unit,
    rate_name,
    span,
)
from loadstone.report.output import site_context
from loadstone.report.queries import Queries, Row, in_order, querying
from loadstone.report.run_findings import RunFindings
from loadstone.report.site_layout import slug
from loadstone.tables import exclusion, layout
from loadstone.text import at, counted, listed, rate_text

ERRORS = {
    "http_503_by_proxy": "HTTP 503 from a proxy",
    "http_503_by_service": "HTTP 503 from the service",
    "http_503": "HTTP 503, sender unknown",
    "http_5xx_by_proxy": "HTTP 5xx other than 503 from a proxy",
    "http_5xx_by_service": "HTTP 5xx other than 503 from the service",
    "http_5xx": "HTTP 5xx other than 503, sender unknown",
    "http_4xx_by_proxy": "HTTP 4xx from a proxy",
    "http_4xx": "HTTP 4xx",
    "http_other": "Other HTTP codes",
    "grpc": "gRPC status other than OK",
    "timeout": "Timeout",
    "refused": "Connection refused",
    "reset": "Connection reset or closed",
    "dns": "DNS lookup failed",
    "tls": "TLS error",
    "client_limit": "Limit of the load generator's machine",
    "no_response": "No response, cause unknown",
}


@dataclass(frozen=True)
class CampaignPage(ChartedPage):
    """Everything a campaign page shows, as the tables and the metadata hold it.

    `overview` is the campaign's row of ``page_campaigns.sql``, empty where the tables don't hold it; `all_cells` and
    `all_errors` are over excluded runs too, and empty where none is excluded.
    """

    campaign: Campaign
    overview: Row
    cells: list[Row]
    errors: list[Row]
    all_cells: list[Row]
    all_errors: list[Row]
    resources: list[Row]
    run_findings: RunFindings
    described: list[Described]

    @property
    def metadata(self) -> list[Metadata]:
        return [cell.metadata for cell in self.described]

    @property
    def loadable_rates(self) -> list[float]:
        """Rates with requests or samples of any run; each has a data file."""
        sampled = {row["rate"] for row in self.resources}
        return sorted(sampled | set(self.raw_rates))

    @property
    def raw_rates(self) -> list[float]:
        """Rates with requests of any run."""
        return sorted({run["rate"] for run in self.runs if run["evidence"] == "raw" and run["requests"]})

    @property
    def excluded(self) -> list[Row]:
        return [run for run in self.runs if run["excluded"]]


def gather(
    queries: Queries, campaign: Campaign, variants: Variants, confidence: float, entry: Mapping[str, Any]
) -> CampaignPage:
    """Query everything except per-rate data. `queries` must be about this campaign alone.

    `confidence` is that of all intervals; `entry` is this campaign's catalogue entry.
    """
    cells = numbers.rounded_to_steps(queries.rows("page_cells", with_excluded=False))
    all_cells = numbers.rounded_to_steps(queries.rows("page_cells", with_excluded=True))
    if not any(cell["n_excluded"] for cell in all_cells):
        all_cells = []
    overview = next(iter(queries.rows("page_campaigns")), {})
    reported = reported_section.gather(queries)
    unit = page_unit([cell["p50_ns"] for cell in cells or all_cells] or [row["p50_ns"] for row in reported.rows])
    described = measurement.describe(campaign, variants)
    planned = plan.variants_of_cells((cell.folder, cell.rate, cell.metadata) for cell in described)
    styles = distinct(variants.styles(campaign.app, overview.get("variants", ()), planned))
    labels = {style.name: style.label for style in styles}
    runs = in_order(queries.rows("page_runs"), labels)
    resources = resources_section.gather(queries)
    findings = run_findings.gather(queries)
    records = {
        (cell.rate, cell.folder, number): record for cell in described for number, record in cell.records.items()
    }
    recorded = [record for cell in described for record in cell.records.values()]
    open_load = not runs or any(run["load_model"] == "open" for run in runs)
    suggestions = in_order(queries.rows("page_suggestions", shown=SHOWN), labels)
    failures = in_order(queries.rows("page_failures", shown=SHOWN), labels)
    return CampaignPage(
        unit=unit,
        styles=styles,
        rates=overview.get("rates", []),
        runs=runs,
        reported=reported,
        concluded=conclusions.gather(queries, confidence),
        distributions=queries.distributions(),
        campaign=campaign,
        overview=overview,
        cells=cells,
        errors=queries.rows("page_errors", with_excluded=False),
        all_cells=all_cells,
        all_errors=queries.rows("page_errors", with_excluded=True) if all_cells else [],
        resources=resources,
        run_findings=findings,
        described=described,
        sections={
            "codes": queries.rows_of_requests("page_codes"),  # other than 200 that count as success
            "missing": in_order(queries.rows("page_missing"), labels),
            "problems": in_order(queries.rows("page_problems", shown=SHOWN), labels),
            "failures": sorted(map(_failure, failures), key=lambda row: bool(row["collected"])),
            "streams": queries.rows("page_streams"),
            **annotations_context(campaign, runs, suggestions, variants, entry),
            **measurement.context(queries, described, labels, open_load=open_load),
            **resources_section.context(resources, labels),
            **incidents.context(queries, recorded, labels, len(runs)),
            **incidents.causes_context(queries, labels),
            **run_findings.context(findings, labels, unit, records),
            **run_findings.generators_context(queries),
        },
    )


def _failure(row: Row) -> Row:
    """A failed attempt with its `failure`, of which a page shows the parts."""
    return row | {"failure": Failure(row["failed_at"], row["phase"], row["error"], tuple(row["evidence"] or ()))}


def context(page: CampaignPage, name: str) -> dict[str, Any]:
    """The variables of ``campaign.html``; `name` is the page's."""
    order = page.positions
    others = [(each.brief, "measured") for each in page.sections["warnings"]]
    if incident := page.sections["incidents_notice"]:
        others.append((incident, "incidents"))
    found = {
        **page.shared_context(others, page.cells),
        "title": f"{page.campaign.app} on {page.campaign.host}, {moment(page.campaign.timestamp)}",
        "heading": f"{page.campaign.app} on {page.campaign.host}",
        "campaign": page.campaign,
        "facts": facts(page),
        "in_brief": in_brief(page),
        "runs_used": runs_used(page),
        "variant_pages": variant_page.pages_of(page.campaign.app, order),
        "compare_address": series_data.address(f"campaigns/{name}"),
        "statistics": {name: label(name) for name in LATENCIES},
        "percentiles": {name: label(name) for name in dict.fromkeys((*SHOWN_PERCENTILES, "p999"))},
        "rates": [(rate_name(rate), rate_text(rate)) for rate in page.raw_rates],
        "sampled_rates": [(rate_name(rate), rate_text(rate)) for rate in page.loadable_rates],
        "timed": any(load_generators.is_timed(run["generator"]) for run in page.runs if run["evidence"] == "raw"),
        "has_codes": not page.cells or any(cell["error_fraction"] is not None for cell in page.cells),
        "variant_choices": list(page.labels.items()),
        "cells": sorted(page.cells, key=lambda cell: (cell["rate"], order[cell["variant"]])),
        "with_excluded": with_excluded(page),
        "shown": SHOWN,
        "error_classes": error_classes([*page.errors, *page.all_errors]),
        "excluded": page.excluded[:SHOWN],
        "n_excluded": len(page.excluded),
        "data": script_data(page, name),
        "specs": page.specifications(),
    }
    found["data"] |= page.answer(found)
    return found


def error_classes(errors: list[Row]) -> list[tuple[str, str]]:
    """The classes that occurred, the most frequent first, each with its name for readers."""
    weight: Counter[str] = Counter()
    for error in errors:
        weight[error["error_class"]] += error["share"]
    return [(name, ERRORS.get(name, name)) for name, _ in weight.most_common()]


def with_excluded(page: CampaignPage) -> list[tuple[Row | None, Row]]:
    """Cells with excluded runs: over their valid runs, if there are any, and over all runs."""
    valid = {(cell["rate"], cell["variant"]): cell for cell in page.cells}
    changed = [cell for cell in page.all_cells if cell["n_excluded"]]
    changed.sort(key=lambda cell: (cell["rate"], page.positions[cell["variant"]]))
    return [(valid.get((cell["rate"], cell["variant"])), cell) for cell in changed]


def script_data(page: CampaignPage, name: str) -> dict[str, Any]:
    """What the page's script reads; ``charts`` has the rows of each chart."""
    data = page.shared_data(name, page.loadable_rates, _across_load(page, page.cells, page.errors))
    data["charts"]["usage"] = chart_rows.resource_usage(resources_section.chart_rows(page.resources), page.styles)
    every_run = None
    if page.all_cells:
        every_run = {"charts": _across_load(page, page.all_cells, page.all_errors)}
        latencies = (every_run["charts"]["latency"], data["charts"]["reported"])
        every_run["logarithmic"] = chart_rows.logarithmic(*latencies)
    rows = [*page.cells, *page.reported.rows]
    known = (name for name in ("p50", *LATENCIES) if any(row.get(f"{name}_ns") is not None for row in rows))
    return data | {
        "resources": resources_section.choices(page.resources),
        "statistic": next(known, "p50"),
        "statistics": {name: title(name) for name in LATENCIES},
        "figures": {name: name for name in LATENCIES},
        "spreads": {"mean": RUN_MEANS},
        "with_excluded": every_run,
    }


def _across_load(page: CampaignPage, cells: Sequence[Row], errors: Sequence[Row]) -> dict[str, Any]:
    return chart_rows.across_load(
        cells,
        errors,
        page.styles,
        page.unit,
        page.concluded,
        means={"mean": "run_"},
        ok_means={"mean": "ok_run_"},
    )


# --- the head of the page ---------------------------------------------------------------------------------------------


_MOST_SHAPES = 3
_MOST_NAMED = 2  # excluded runs that are named at the top


def runs_used(page: CampaignPage) -> str:
    """How many of the planned runs the page's figures are based on."""
    # A run of which only the load generator's report is left is valid in comparisons, but not here.
    reported = sum(run["evidence"] != "raw" and not run["excluded"] for run in page.runs)
    valid = len(page.runs) - len(page.excluded) - reported
    excluded = f"{len(page.excluded):,} excluded{_excluded_text(page)}"
    if reported:
        excluded += f"; {reported:,} with only the load generator's report, listed separately"
    if page.runs and reported == len(page.runs):
        only = f"{counted(reported, 'run')} with only the load generator's report; 0 excluded"
        return f"{only}. Figures are as reported, run by run."
    planned = page.overview.get("planned")
    if planned is None:
        return f"{counted(valid + reported, 'run')}; {excluded}. The number of planned runs was not recorded."
    text = f"{page.overview['planned_collected'] or 0:,} of {counted(planned, 'planned run')} collected; {excluded}"
    if not page.excluded and not reported:
        return f"{text}."
    return f"{text}, so the figures are based on {counted(valid, 'run')}."


def _excluded_text(page: CampaignPage) -> str:
    """Which runs are excluded and why, in brackets, where that is one reason and few runs."""
    reasons = {tuple(exclusion.of_row(run)) for run in page.excluded}
    if len(reasons) != 1 or () in reasons or len(page.excluded) > _MOST_NAMED:
        return ""
    names = (f"run {run['run']} of {page.labels[run['variant']]} at {rate_text(run['rate'])}" for run in page.excluded)
    return f" ({listed(names)}: {page.excluded[0]['exclusion_reason'].rstrip('.')})"


def in_brief(page: CampaignPage) -> str:
    """What was measured and how, in one line."""
    per_cell = span(cell["n_runs"] for cell in page.cells)
    each = f"{per_cell} {'run' if per_cell == '1' else 'runs'} per variant and load" if per_cell else ""
    lasted = _durations(run["duration_s"] for run in page.runs)
    models = joined(run["load_model"] for run in page.runs)
    generators = joined(" ".join(filter(None, (cell.generator, cell.generator_version))) for cell in page.metadata)
    loads = f" ({span(page.rates)} {page.load_unit})" if page.rates else ""
    has_failed = any(not row["collected"] for row in page.sections["failures"])
    parts = [
        counted(len(page.styles), "variant"),
        f"{counted(len(page.rates), 'load')}{loads}",
        f"{each}, {lasted} each" if each and lasted else each,
        f"{models} load" if models else "",
        " ".join(filter(None, (generators, measurement.machine_text(page.described)))),
        f"{sum(run['requests'] or 0 for run in page.runs):,} requests" if page.runs else "",
        "later extended" if _parts(page) else "",
        numbers.incomplete(page.overview, has_failed=has_failed) if page.campaign.is_open else "",
    ]
    return f"{', '.join(filter(None, parts))}."


def _parts(page: CampaignPage) -> str:
    """The runs of each later part of an extended campaign, by load: ``part 2: runs 3–4 at 20; runs 1–4 at 80``."""
    found: dict[int, dict[float, set[int]]] = {}
    for run in page.runs:
        if run["part"] and run["part"] > 1:
            found.setdefault(run["part"], {}).setdefault(run["rate"], set()).add(run["run"])
    texts = []
    for part, by_rate in sorted(found.items()):
        alike: dict[str, list[float]] = {}
        for rate, runs in sorted(by_rate.items()):
            alike.setdefault(numbers.listed(runs), []).append(rate)
        places = (f"runs {runs} {at(rates, page.rates, page.load_unit, every=True)}" for runs, rates in alike.items())
        texts.append(f"part {part}: {', '.join(places)}")
    return "; ".join(texts)


def facts(page: CampaignPage) -> list[tuple[str, str]]:
    """Headline facts as (term, description), empty where tables and metadata have none."""
    runs, cells = page.runs, page.metadata
    models = joined(LOAD_MODELS.get(run["load_model"], run["load_model"]) for run in runs)
    labels = {f"{key}: {value}" for run in runs for key, value in (run["labels"] or {}).items()}
    per_cell = sorted({cell["n_runs"] for cell in page.cells})
    return [
        ("Application", page.campaign.app),
        ("Host", page.campaign.host),
        ("Opened", f"{moment(page.campaign.timestamp)} ({page.campaign.timestamp})"),
        ("Load model", models),
        ("Load", f"{span(page.rates)} {page.load_unit}" if page.rates else ""),
        ("Stages", _stages(cells)),
        ("Runs per cell", span(per_cell)),
        ("Requests", f"{sum(run['requests'] or 0 for run in runs):,}" if runs else ""),
        ("Latency resolution", _steps(runs)),
        ("Duration of a run", joined((_durations(run["duration_s"] for run in runs), *map(_iterations, cells)))),
        ("Warm-up", "" if _stages(cells) else _warmup(cells)),
        *_pods(page),
        ("Extended", _parts(page)),
        ("Labels", ", ".join(sorted(labels))),
    ]


def _pods(page: CampaignPage) -> Iterator[tuple[str, str]]:
    if text := measurement.replicas_text(page.metadata):
        yield "Replicas", text
        recorded = [record for cell in page.described for record in cell.records.values()]
        yield "Pods during a run", span(sum(count for _, count in record.pods) or None for record in recorded)
    else:
        yield "Replicas", joined(str(run["replicas"]) for run in page.runs if run["replicas"] is not None)


def _steps(runs: Sequence[Row]) -> str:
    coarse_ns = {run["resolution_ns"] for run in runs if (run["resolution_ns"] or 0) >= numbers.COARSE_NS}
    return joined(map(numbers.resolution_text, sorted(coarse_ns)))


def _durations(seconds: Iterable[float | None]) -> str:
    known = sorted({value for value in seconds if value is not None})
    if len(known) > 3:
        return f"{duration(known[0])} to {duration(known[-1])}"
    return ", ".join(map(duration, known))


def _iterations(cell: Metadata) -> str:
    """End condition of runs with a fixed number of iterations per user."""
    if (stage := cell.measured) is None or not stage.iterations:
        return ""
    return f"{counted(stage.iterations, 'iteration')} per user, at most {duration(stage.duration_s)}"


def _stages(cells: list[Metadata]) -> str:
    """Stage profiles of runs that have stages besides warm-up and test; at most `_MOST_SHAPES`."""
    shapes = dict.fromkeys(
        ", ".join(map(_stage, cell.stages)) for cell in cells if {stage.name for stage in cell.stages} - {WARMUP, TEST}
    )
    shown = list(shapes)[:_MOST_SHAPES]
    more = [f"and {len(shapes) - len(shown)} more"] if len(shapes) > len(shown) else []
    return "; ".join([*shown, *more])


def _stage(stage: Stage) -> str:
    rate, to = f"{stage.rate or 0:g}", f"{stage.to or 0:g}"
    load = f"at {rate} requests/s" if rate == to else f"from {rate} to {to} requests/s"
    return f"{stage.name} {duration(stage.duration_s)} {load}{' (measured)' if stage.measured else ''}"


def _warmup(cells: list[Metadata]) -> str:
    lengths = {cell.warmup_duration_s for cell in cells}
    if not lengths - {None, 0.0}:
        return "none" if lengths == {0.0} else ""
    rates = span(cell.warmup_rate for cell in cells)
    lasting = " or ".join(duration(length) for length in sorted(lengths - {None}, key=float))  # type: ignore[arg-type]
    return f"{lasting} at {rates} requests/s" if rates else lasting


# --- annotations ------------------------------------------------------------------------------------------------------


_NO_ENTRY: dict[str, Any] = {"purpose": None, "notes": (), "corrections": ()}
_ENTRY_FIELDS = {"mode": "mode", "runs": "runs", "replicas": "replicas", "rates": "requests/s", "variants": "variants"}


def annotations_context(
    campaign: Campaign, runs: Sequence[Row], suggestions: Sequence[Row], variants: Variants, entry: Mapping[str, Any]
) -> dict[str, Any]:
    """Variables of ``known.html``; `entry` is this campaign's catalogue entry, empty when there is none."""
    present = {run["variant"] for run in runs}
    carried = Counter(tag for run in runs for tag in run["tags"] or ())
    return {
        "entry": _NO_ENTRY | dict(entry),
        "trace_dumps": [(dump["file"], dump.get("of")) for dump in entry.get("trace_dumps", ())],
        "measured": [(_ENTRY_FIELDS[name], _joined(value)) for name, value in entry.get("measured", {}).items()],
        "tags": [(tag, carried[tag], entry.get("tags", {}).get(tag)) for tag in sorted(carried)],
        "relabelled": variants.relabelled(campaign.app, present, campaign.instant),
        "suggestions": suggestions,
        "n_suggestions": suggestions[0]["n_suggestions"] if suggestions else 0,
    }


def _joined(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# --- its files -------------------------------------------------------------------------------------------------------


def build_campaign(
    campaign: Campaign,
    tables: Path,
    reports: Path,
    variants: Variants,
    options: Mapping[str, Any],
    *,
    entry: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page of one campaign, the data files of its rates and its series; returns the page's path.

    `options` is the configuration's ``report`` section; ``title`` names the site,
    ``confidence`` is that of intervals; `entry` is this campaign's catalogue entry, if any.
    Data files of rates that the campaign no longer has are removed.
    """
    name = slug(campaign)
    folder = reports / "campaigns" / name
    part = site_layout.Part(reports, f"campaigns/{name}").begin()
    confidence = float(options.get("confidence", 0.95))
    with querying(tables, [campaign]) as queries:
        page = gather(queries, campaign, variants, confidence, entry or {})
        settings = series_data.settings(variants, layout.text(campaign.app), confidence)
        scope = scope_of_campaign(queries.connection, campaign, tables, settings)
        series = series_data.write(
            reports, f"campaigns/{name}", scope, variants, unit=page.unit, step=page.step, claims=page.concluded.claims
        )
        written = {file.name for file in series}
        runs = {rate: [run for run in page.runs if run["rate"] == rate] for rate in page.loadable_rates}
        read = _files_by_rate(tables, campaign)
        written |= rate_data.write(
            queries, folder, runs, read, unit=page.unit, findings=page.run_findings, styles=page.styles
        )
        inputs = reproducibility.inputs(queries, tables, [campaign])
    site_layout.remove_others(folder, written)
    path = reports / "campaigns" / f"{name}.html"
    content = {**context(page, name), **site_context(options, tables)}
    content |= figures.link_preview(path, {**content, "lead": content["in_brief"]})
    title = f"{layout.text(str(campaign))}: load-test results"
    about = reproducibility.About(title, "Latency and errors of a sweep.", [campaign], options)
    evidence = reproducibility.Evidence(inputs, reproducibility.tables_of(tables, [campaign]), page.metadata)
    part.finish(reproducibility.write_with_evidence(path, "campaign.html", content, about, evidence))
    return path


def _files_by_rate(tables: Path, campaign: Campaign) -> dict[float, list[Path]]:
    """The files of tables `requests` and `resources`; each is one cell's and named by its rate first."""
    found: dict[float, list[Path]] = {}
    for table in ("requests", "resources"):
        for file in layout.partition(tables, table, campaign).glob("*.parquet"):
            found.setdefault(float(file.name.partition("_")[0]), []).append(file)
    return found
