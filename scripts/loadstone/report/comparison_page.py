"""The page of a comparison: figures by three averages, their evidence, and excluded runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from loadstone.analysis.comparison import Fitted, Selection, fit_all, scope_of_comparison, select
from loadstone.archive import METADATA, Campaign, metadata, scan_campaign
from loadstone.config.comparisons import ALLOWANCES, Comparison
from loadstone.config.variants import Style, Variants, look
from loadstone.percentiles import PERCENTILES, SHOWN_PERCENTILES, label
from loadstone.readers import load_generators
from loadstone.report import (
    chart_rows,
    charts,
    conclusions,
    figures,
    numbers,
    reported_section,
    reproducibility,
    resources_section,
    series_data,
    site_layout,
)
from loadstone.report.charted_page import ChartedPage
from loadstone.report.conclusions import Notice
from loadstone.report.numbers import (
    LOAD_MODELS,
    RUN_MEANS,
    SHOWN,
    joined,
    page_unit,
    rounded,
    share,
    significant,
    span,
    styles_of,
)
from loadstone.report.output import site_context
from loadstone.report.queries import Queries, Row, in_order, querying, run_key
from loadstone.report.site_layout import slug
from loadstone.text import counted, listed, load_unit, rate_text

STATISTICS = {
    "summaries": "Mean of runs",
    "raw": "Mean of requests",
    **{name: label(name) for name in SHOWN_PERCENTILES},
}
SPREADS = {
    "summaries": RUN_MEANS,
    "raw": {"name": "± one standard deviation of all requests", "of_runs": False},
}
ERRORS = {
    "503": "HTTP status code 503",
    "0": "No complete response (code 0)",
    "other": "Codes other than 200, 503 and 0",
}


@dataclass(frozen=True)
class ComparisonPage(ChartedPage):
    """Everything a comparison's page shows, as the tables hold it. `campaigns` are those that the archive holds.

    `runs` are those behind its figures, `rows` those of `comparisons`.

    Where runs were measured in several ways, each way of a variant is a series of its own, and ``variant`` its name.
    """

    comparison: Comparison
    campaigns: Sequence[Campaign]
    selection: Selection
    rows: list[Row]

    @property
    def drawn(self) -> list[Row]:
        """The rows that have figures other than those that tools reported of single runs."""
        return [row for row in self.rows if row["n_requests"] or row["vegeta_summaries_mean_ns"] is not None]


def gather(
    queries: Queries,
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    variants: Variants,
    confidence: float,
) -> ComparisonPage:
    """Query all that the page shows. `queries` is about `campaigns`, those of the comparison that the archive holds.

    `confidence` is that of all intervals.
    """
    selection = select(comparison, queries.connection)
    valid = [] if selection.refusals else selection.valid
    naming = _Naming(valid)
    rows = numbers.rounded_to_steps(map(naming.named, queries.of_scope("comparisons", comparison.id)))
    counts = among(valid)
    reported = reported_section.gather(queries, counts, naming.named)
    present = {run["variant"] for run in valid}
    styles = styles_of(variants, campaigns, comparison.app, present)
    labels = {style.name: style.label for style in styles} if naming.differing else None
    medians = [row["p50_ns"] or row["vegeta_summaries_mean_ns"] for row in rows]
    use_shown = bool(reported.rows or comparison.fits)
    return ComparisonPage(
        unit=page_unit(medians or [row["p50_ns"] for row in reported.rows]),
        styles=naming.styles(styles),
        rates=sorted({row["rate"] for row in rows}),
        runs=selection.valid,
        reported=reported,
        concluded=conclusions.gather(queries, confidence, comparison.id, naming.name, labels),
        distributions=queries.distributions(comparison.id, counts=counts, named=naming.named),
        comparison=comparison,
        campaigns=campaigns,
        selection=selection,
        rows=rows,
        sections={
            **resources_section.per_run(queries, lambda run: use_shown and counts(run), SHOWN),
            "fits": fits_context(
                list(fit_all(comparison, valid, queries.connection, confidence)),
                naming.of_variant,
                {run["load_model"] for run in selection.valid},
            ),
            "meanings": reported_section.meanings(queries, valid),
        },
    )


def among(runs: Iterable[Row]) -> Callable[[Row], bool]:
    """Whether a row is about one of these runs."""
    keys = set(map(run_key, runs))
    return lambda row: run_key(row) in keys


class _Naming:
    """The names of series: the variant and, if the comparison has several, the load generator and the load model."""

    def __init__(self, valid: Sequence[Row]) -> None:
        meanings = {load_generators.meaning(run["generator"]) for run in valid}
        models = {run["load_model"] for run in valid}
        differ = {"generator": len(meanings) > 1, "load_model": len(models) > 1}
        self.differing = [name for name, does in differ.items() if does]
        self.units = {model: load_unit([model]) for model in models} if "closed" in models and len(models) > 1 else {}
        self.series = sorted({(str(run["variant"]), self._way(run)) for run in valid})

    def _way(self, run: Row) -> str:
        """If some loads are users and others requests/s, the way of each series has the unit."""
        unit = self.units.get(run["load_model"])
        return joined(str(run[name]) for name in self.differing) + (f": {unit}" if unit else "")

    def name(self, run: Row) -> str:
        """The series of a row that has a variant, a generator and a load model."""
        way = self._way(run)
        return f"{run['variant']} ({way})" if way else run["variant"]

    def of_variant(self, variant: str) -> str:
        """The first series of a variant."""
        return next(f"{name} ({way})" if way else name for name, way in self.series if name == variant)

    def named(self, row: Row) -> Row:
        return row | {"variant": self.name(row)}

    def styles(self, styles: Sequence[Style]) -> list[Style]:
        """A style for each series, in the order of the variants' styles."""
        if not self.differing:
            return list(styles)
        found = [
            (f"{style.name} ({way})", f"{style.label} ({way})")
            for style in styles
            for variant, way in self.series
            if variant == style.name
        ]
        return [Style(name, label, *look(position)) for position, (name, label) in enumerate(found)]


def context(page: ComparisonPage) -> dict[str, Any]:
    """The variables of ``comparison.html``."""
    order, drawn, selection, fits = page.positions, page.drawn, page.selection, page.sections["fits"]
    specifications = page.specifications()
    notices = [] if selection.refusals else list(_notices(page))
    found = {
        **page.shared_context([(each.brief, "evidence") for each in notices], drawn, campaigns=len(page.campaigns) > 1),
        "notices": notices,
        "raw": any(row["n_requests"] for row in drawn),
        "by_code": any(row["error_503_fraction"] is not None for row in drawn),
        "failures": [
            name for name in ("error_fraction", *map(_fraction, ERRORS)) if any(row[name] is not None for row in drawn)
        ],
        "has_means": any(row["vegeta_summaries_mean_ns"] is not None for row in drawn),
        "has_codes": any(row["error_fraction"] is not None for row in drawn),
        "comparison": page.comparison,
        "compare_address": series_data.address(f"comparisons/{page.comparison.id}"),
        "title": page.comparison.title,
        "heading": page.comparison.title,
        "lead": f"{counted(len(page.campaigns), 'campaign')} of {page.comparison.app} on "
        f"{listed(page.comparison.hosts)}",
        "facts": facts(page),
        "runs_used": runs_used(page),
        "refusals": selection.refusals,
        "campaigns": _campaigns(page),
        "excluded": sorted(in_order(selection.excluded, order), key=itemgetter("host", "timestamp"))[:SHOWN],
        "n_excluded": len(selection.excluded),
        "not_compared": sorted(Counter(run["pattern"] for run in selection.not_compared).items()),
        "n_not_compared": len(selection.not_compared),
        "doubted": in_order(selection.doubted, order)[:SHOWN],
        "n_doubted": 0 if selection.refusals else len(selection.doubted),
        "partial": any(row["n_runs"] != row[name] for row in drawn for name in row if name.endswith("_n_runs")),
        "statistics": statistics(page),
        "rows": sorted(drawn, key=lambda row: (row["rate"], order[row["variant"]])),
        "error_classes": [item for item in ERRORS.items() if any(row[_fraction(item[0])] for row in drawn)],
        "data": script_data(page),
        "specs": {name: specifications[name] for name in charts.SHARED}
        | {f"fit-{number}": charts.fit_specification(page.styles, *fit["axes"]) for number, fit in enumerate(fits)},
    }
    found["data"] |= page.answer(found)
    return found


def statistics(page: ComparisonPage) -> dict[str, str]:
    """The statistics that any row has."""
    columns = {"summaries": "vegeta_summaries_mean_ns", "raw": "all_raw_data_mean_ns"}
    return {
        name: text
        for name, text in STATISTICS.items()
        if any(row[columns.get(name, f"{name}_ns")] is not None for row in page.drawn)
        or any(run.get(reported_section.CHARTED.get(name, "")) is not None for run in page.reported.rows)
    } or STATISTICS


def _fraction(name: str) -> str:
    return f"error_{name}_fraction"


def facts(page: ComparisonPage) -> list[tuple[str, str]]:
    """Headline facts as (term, description)."""
    return [
        ("Application", page.comparison.app),
        ("Host", ", ".join(page.comparison.hosts)),
        ("Campaigns", f"{len(page.campaigns)} of {len(page.comparison.timestamps) * len(page.comparison.hosts)} named"),
        ("Load model", joined(sorted(LOAD_MODELS.get(run["load_model"], str(run["load_model"])) for run in page.runs))),
        ("Load", f"{span(page.rates)} {page.load_unit}" if page.rates else ""),
        ("Runs per load and variant", span(row["n_runs"] for row in page.rows)),
        ("Requests", f"{sum(run['requests'] or 0 for run in page.runs):,}" if page.rows else ""),
    ]


def runs_used(page: ComparisonPage) -> str:
    """How many runs the page's figures are based on."""
    selection = page.selection
    if selection.refusals:
        return "No figure is given."
    evidence = Counter(run["evidence"] for run in page.runs)
    text = f"The figures are based on {counted(len(page.runs), 'run')}; {len(selection.excluded):,} excluded"
    if selection.not_compared:
        text += f", {len(selection.not_compared):,} not compared"
    if reported := evidence["summary"] + evidence["histogram"]:
        text += f"; {counted(reported, 'run has', 'runs have')} only the load generator's report"
    if selection.doubted:
        text += f"; the report of {counted(len(selection.doubted), 'run')} contradicts itself or the requests"
    return f"{text}."


def _campaigns(page: ComparisonPage) -> list[dict[str, Any]]:
    """Every campaign that the comparison names, with the numbers of its runs."""
    held = set(page.campaigns)
    counts = {
        name: Counter((run["host"], run["timestamp"]) for run in runs)
        for name, runs in (
            ("valid", page.runs),
            ("excluded", page.selection.excluded),
            ("not_compared", page.selection.not_compared),
        )
    }
    named = page.comparison.campaigns(page.campaigns[0].root) if page.campaigns else []
    return [
        {
            "campaign": campaign,
            "page": f"../campaigns/{slug(campaign)}.html" if campaign in held else None,
            **{name: count[campaign.host, campaign.timestamp] for name, count in counts.items()},
        }
        for campaign in named
        # With several hosts, not every timestamp is meant for each.
        if campaign in held or len(page.comparison.hosts) == 1
    ]


def script_data(page: ComparisonPage) -> dict[str, Any]:
    """What the page's script reads; ``charts`` has the rows of each chart."""
    fits, named = page.sections["fits"], statistics(page)
    across_load = chart_rows.across_load(
        page.drawn,
        _errors(page),
        page.styles,
        page.unit,
        page.concluded,
        means={"summaries": "vegeta_summaries_", "raw": "all_raw_data_"},
        ok_means={"summaries": "ok_run_", "raw": "all_raw_data_ok_"},
    )
    data = page.shared_data(page.comparison.id, page.distributions.rates, across_load)
    data["charts"]["fit"] = [chart_rows.fit(fit["line"], fit["runs"], page.styles) for fit in fits]
    only_means = page.drawn and all(row["p50_ns"] is None for row in page.drawn)
    return data | {
        "fits": [{"result": fit["result"], "axes": fit["axes"]} for fit in fits],
        "statistic": next(iter(named)) if only_means else "p50",
        "statistics": named,
        # Both means are averages of the same runs: single runs and conclusions have one mean.
        "figures": {name: "mean" if name in SPREADS else name for name in named},
        "spreads": SPREADS,
    }


def _errors(page: ComparisonPage) -> list[Row]:
    return [
        {
            "rate": row["rate"],
            "variant": row["variant"],
            "error_class": name,
            "share": row[_fraction(name)],
            "share_std": row[f"{_fraction(name)}_std"],
        }
        for row in page.drawn
        for name in ERRORS
        if row[_fraction(name)]
    ]


_MEASURED_IN_STEPS = {"all_raw_data_mean_ns": "mean"}
_MEASURED_IN_STEPS |= {f"{name}_ns": label(name).lower() for name in PERCENTILES if name != "p999"}


def _notices(page: ComparisonPage) -> Iterator[Notice]:
    """What a comparison allows, and what its loads and clocks do not allow to conclude."""
    for name in sorted(page.comparison.allow):
        yield Notice(
            _capitalized(ALLOWANCES[name][0]),
            f"This comparison explicitly allows what is not compared by default: {'; '.join(ALLOWANCES[name])}.",
        )
    if len({run["load_model"] == "closed" for run in page.runs}) == 2:
        yield Notice(
            "The load is users in some series, requests/s in others",
            "The load is a number of users in some series and requests/s in others, as the names of the series say. "
            "Points of the two kinds at the same position of a chart do not have the same load.",
        )
    for one, other, names in numbers.indistinguishable(page.drawn, list(_MEASURED_IN_STEPS)):
        step = numbers.resolution_text(max(one["resolution_ns"] or 0, other["resolution_ns"] or 0))
        which = listed([_MEASURED_IN_STEPS[name] for name in names])
        pair = f"{page.labels[one['variant']]} and {page.labels[other['variant']]}"
        place = f"{rate_text(one['rate'])} {page.load_unit}"
        yield Notice(
            f"At {place}, {pair} differ by no more than {step}, the clock's resolution",
            f"At {place}, {pair} differ in {which} by no more than {step}, the resolution of these latencies: the "
            "difference is not significant.",
        )


# --- lines fitted over runs -------------------------------------------------------------------------------------------


_BAND_POINTS = 26


def fits_context(fitted: Sequence[Fitted], names: Callable[[str], str], models: set[str]) -> list[dict[str, Any]]:
    """Title, sentences and evidence of each line for ``fits.html``, and its chart's data.

    `names` maps a variant to its series, `models` are the load models of the runs.
    """
    unit = load_unit(models)
    return [
        {
            "title": _capitalized(f"{_what(each)} by {_across(each, unit)}"),
            "result": _sentence(each, load_unit(models, one=True)) if each.line else "",
            "problem": each.problem,
            "evidence": _evidence(each, unit),
            "axes": (_capitalized(_across(each, unit)), f"{_capitalized(_what(each))} ({each.fit.unit})"),
            "line": list(_band(each)),
            "runs": [
                {
                    "variant": names(point.variant),
                    "x": point.x,
                    "value": rounded(point.y, 6),
                    "run": point.run,
                    "load": rate_text(point.rate),
                    "rate": point.rate,
                }
                for point in each.points
            ],
        }
        for each in fitted
    ]


def _band(each: Fitted) -> Iterator[Row]:
    if each.line is None:
        return
    xs = [point.x for point in each.points]
    for x in np.linspace(min(xs), max(xs), _BAND_POINTS):
        value, low, high = each.line.at(float(x))
        yield {name: rounded(number, 6) for name, number in (("x", x), ("line", value), ("low", low), ("high", high))}


def _what(each: Fitted) -> str:
    of = {"cpu": "CPU", "memory": "memory", "p50": "median latency", "min": "least latency", "max": "greatest latency"}
    what = of.get(each.fit.of, f"{each.fit.of} latency")
    part = "all of the target" if each.fit.name == "TOTAL" else each.fit.name
    return f"{what} of {part}" if part else what


def _capitalized(text: str) -> str:
    """With its first letter in upper case, the others as they are."""
    return text[:1].upper() + text[1:]


def _across(each: Fitted, load_unit: str) -> str:
    return f"load ({load_unit})" if each.fit.x == "rate" else f"number of {each.fit.x}"


def _one_of_label(name: str) -> str:
    """The singular of a label: ``pod`` for ``pods``."""
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _sentence(each: Fitted, one_load: str) -> str:
    line, unit, one = each.line, each.fit.unit, one_load if each.fit.x == "rate" else _one_of_label(each.fit.x)
    assert line is not None
    between = numbers.interval(line.slope_low, line.slope_high, _number)
    slope = f"{_number(line.slope)} {unit} per {one}, {share(line.confidence)} interval {between}"
    between = numbers.interval(line.intercept_low, line.intercept_high, _number)
    base = f"{_number(line.intercept)} {unit} intercept {between}"
    zero = " The interval contains zero, so the slope is not significant."
    return f"{slope}; {base}.{zero if line.slope_low <= 0 <= line.slope_high else ''}"


def _number(value: float) -> str:
    return significant(value)


_FITTED_FROM = {"reported": "the tools' reports", "requests": "their requests"}


def _evidence(each: Fitted, load_unit: str) -> str:
    xs = sorted({point.x for point in each.points})
    if not xs:
        return ""
    loads = listed([rate_text(rate) for rate in sorted({point.rate for point in each.points})])
    evidence = joined(_FITTED_FROM.get(point.evidence, point.evidence) for point in each.points)
    at = f"at {loads} {load_unit}"
    where = at if each.fit.x == "rate" else f"with {listed([f'{x:g}' for x in xs])} {each.fit.x}, {at}"
    student = f"(Student's t, {len(each.points) - 2} degrees of freedom)"
    band = f" The band is the {share(each.line.confidence)} interval of the line {student}." if each.line else ""
    missing = "such a figure" if each.fit.x == "rate" else f"a number of {each.fit.x} or such a figure"
    left = f"; {counted(each.n_left_out, 'run')} without {missing} excluded" if each.n_left_out else ""
    return (
        f"Least squares over {counted(len(each.points), 'run')} {where}, each one point, from {evidence}{left}.{band}"
    )


def build_comparison(
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    *,
    options: Mapping[str, Any],
) -> Path:
    """Write the page of one comparison and its series; returns the page's path.

    `campaigns` are those of its own that the archive holds.
    """
    folder = f"comparisons/{comparison.id}"
    part = site_layout.Part(reports, folder).begin()
    confidence = float(options.get("confidence", 0.95))
    with querying(tables, list(campaigns)) as queries:
        page = gather(queries, comparison, campaigns, variants, confidence)
        settings = series_data.settings(variants, comparison.app, confidence)
        scope = scope_of_comparison(queries.connection, comparison, campaigns, tables, settings)
        inputs = reproducibility.inputs(queries, tables, campaigns, among(page.runs))
    refusals = page.selection.refusals
    claims = page.concluded.claims
    series = series_data.write(
        reports, folder, scope, variants, unit=page.unit, step=page.step, claims=claims, refusals=refusals
    )
    site_layout.remove_others(reports / folder, {file.name for file in series})
    path = reports / f"{folder}.html"
    cells = [listing.cell for campaign in campaigns for listing in scan_campaign(campaign).cells]
    described = [metadata.read(cell.path / METADATA) for cell in cells]
    content = {**context(page), **site_context(options, tables)}
    content |= figures.link_preview(path, content)
    about = reproducibility.About(comparison.title, "A comparison of load-test results.", campaigns, options)
    evidence = reproducibility.Evidence(inputs, reproducibility.tables_of(tables, campaigns, comparison), described)
    part.finish(reproducibility.write_with_evidence(path, "comparison.html", content, about, evidence))
    return path
