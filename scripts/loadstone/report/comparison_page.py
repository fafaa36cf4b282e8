"""What a comparison's page says: figures by three averages, their evidence, and excluded runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

from loadstone.analysis.comparison import Fitted, Selection, fit_all, select
from loadstone.archive import Campaign, plan
from loadstone.config.comparisons import ALLOWANCES, Comparison
from loadstone.config.variants import Style, Variants, look
from loadstone.readers import load_generators
from loadstone.report import (
    chart_rows,
    charts,
    conclusions,
    distributions_section,
    fits_section,
    numbers,
    reported_section,
    resources_section,
)
from loadstone.report.charts import Load
from loadstone.report.conclusions import Conclusions
from loadstone.report.distributions_section import Distributions
from loadstone.report.numbers import (
    LOAD_MODELS,
    SHOWN,
    Unit,
    counted,
    distinct,
    interval_text,
    joined,
    latency_in,
    page_unit,
    when,
)
from loadstone.report.queries import Questions, Row, in_order
from loadstone.report.reported_section import Reported
from loadstone.report.site_layout import slug
from loadstone.text import listed, load_unit, rate_text

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
    """Everything a comparison's page shows, as the tables hold it. `campaigns` are those that the archive holds.

    Where runs were measured in several ways, each way of a variant is a series of its own, and ``variant`` its name.
    """

    comparison: Comparison
    campaigns: Sequence[Campaign]
    selection: Selection
    rows: list[Row]
    unit: Unit
    styles: list[Style]
    reported: Reported
    fitted: list[Fitted]
    used: dict[str, Any]
    meanings: list[dict[str, Any]]
    concluded: Conclusions
    distributions: Distributions

    @property
    def step(self) -> list[float] | None:
        """The least step of all latencies, where all are coarse."""
        return numbers.coarse_step(self.selection.counting, self.unit)

    @property
    def load_unit(self) -> str:
        """What the numbers of loads count."""
        return load_unit(run["load_model"] for run in self.selection.counting)

    @property
    def drawn(self) -> list[Row]:
        """The rows with any figure of their own besides what single runs' tools reported."""
        return [row for row in self.rows if row["n_requests"] or row["vegeta_summaries_mean_ns"] is not None]

    def counts(self, run: Row) -> bool:
        """Whether the page's figures rest on a run, given by the columns that name it."""
        return _run(run) in self._counting

    @cached_property
    def _counting(self) -> set[tuple[Any, ...]]:
        return {_run(run) for run in self.selection.counting}

    @property
    def rates(self) -> list[float]:
        return sorted({row["rate"] for row in self.rows})


def gather(
    questions: Questions,
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    variants: Variants,
    confidence: float,
) -> ComparisonPage:
    """Ask for everything. `questions` must be about these campaigns, those of the comparison that the archive holds.

    `confidence` is that of all intervals.
    """
    selection = select(comparison, questions.connection)
    counting = [] if selection.refusals else selection.counting
    naming = _Naming(counting)
    rows = numbers.rounded_to_steps(map(naming.named, questions.of_scope("comparisons", comparison.id)))
    keys = {_run(run) for run in counting}
    reported = reported_section.gather(questions, lambda run: _run(run) in keys, naming.named)
    present = {run["variant"] for run in counting}
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    all_declared = variants.declared.get(comparison.app, {}).keys() >= present
    planned = [] if all_declared else chain.from_iterable(map(plan.declared_variants, newest_first))
    styles = distinct(variants.styles(comparison.app, present, planned))
    labels = {style.name: style.label for style in styles} if naming.differing else None
    medians = [row["p50_ns"] or row["vegeta_summaries_mean_ns"] for row in rows]
    return ComparisonPage(
        comparison=comparison,
        campaigns=campaigns,
        selection=selection,
        rows=rows,
        unit=page_unit(medians or [row["p50_ns"] for row in reported.rows]),
        styles=naming.styles(styles),
        reported=reported,
        fitted=list(fit_all(comparison, counting, questions.connection, confidence)),
        used=resources_section.per_run(
            questions, lambda run: bool(reported.rows or comparison.fits) and _run(run) in keys, SHOWN
        ),
        meanings=reported_section.meanings(questions, counting),
        concluded=conclusions.gather(questions, confidence, comparison.id, naming.name, labels),
        distributions=distributions_section.gather(
            questions, comparison.id, counts=lambda run: _run(run) in keys, named=naming.named
        ),
    )


def _run(run: Row) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("host", "timestamp", "rate", "variant_dir", "run"))


class _Naming:
    """What series are called: by their variant and, where the comparison has several, by tool and load model."""

    def __init__(self, counting: Sequence[Row]) -> None:
        meanings = {load_generators.meaning(run["generator"]) for run in counting}
        models = {run["load_model"] for run in counting}
        differ = {"generator": len(meanings) > 1, "load_model": len(models) > 1}
        self.differing = [name for name, does in differ.items() if does]
        self.units = {model: load_unit([model]) for model in models} if "closed" in models and len(models) > 1 else {}
        self.series = sorted({(str(run["variant"]), self._way(run)) for run in counting})

    def _way(self, run: Row) -> str:
        """Where loads are of users in one series and of requests/s in another, each says which it counts."""
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
    order = {style.name: position for position, style in enumerate(page.styles)}
    labels = {style.name: style.label for style in page.styles}
    selection, load = page.selection, Load(tuple(page.rates), page.load_unit)
    specifications = charts.specifications(page.styles, page.unit, load)
    shown = [style for style in page.styles if any(row["variant"] == style.name for row in page.drawn)]
    reported = reported_section.context(page.reported, labels, page.unit, campaigns=len(page.campaigns) > 1)
    return (
        page.used
        | reported
        | conclusions.context(page.concluded, page.styles, page.unit, page.step)
        | {
            "load_unit": page.load_unit,
            "reported_chart": reported_section.has_loads(page.reported),
            "fits": fits_section.context(page.fitted, page.load_unit),
            "meanings": page.meanings,
            "below_resolution": _below_resolution(page.drawn, labels, page.load_unit),
            "raw": any(row["n_requests"] for row in page.drawn),
            "by_code": any(row["error_503_fraction"] is not None for row in page.drawn),
            "failures": [
                name
                for name in ("error_fraction", *(_fraction(code) for code in ERRORS))
                if any(row[name] is not None for row in page.drawn)
            ],
            "has_means": any(row["vegeta_summaries_mean_ns"] is not None for row in page.drawn),
            "spread": lambda row, name: numbers.spread_text(row[name], page.unit, row["resolution_ns"]),
            "has_codes": any(row["error_fraction"] is not None for row in page.drawn),
            "comparison": page.comparison,
            "title": page.comparison.title,
            "heading": page.comparison.title,
            "lead": f"A comparison of campaigns: {page.comparison.app} on {' and '.join(page.comparison.hosts)}",
            "facts": facts(page),
            "rests_on": rests_on(page),
            "refusals": selection.refusals,
            "allowed": [ALLOWANCES[name] for name in sorted(page.comparison.allow)],
            "two_units": " or " in page.load_unit,
            "campaigns": _campaigns(page),
            "excluded": sorted(in_order(selection.excluded, order), key=itemgetter("host", "timestamp"))[:SHOWN],
            "n_excluded": len(selection.excluded),
            "left_out": sorted(Counter(run["pattern"] for run in selection.left_out).items()),
            "n_left_out": len(selection.left_out),
            "doubted": in_order(selection.doubted, order)[:SHOWN],
            "n_doubted": 0 if selection.refusals else len(selection.doubted),
            "chart_styles": shown or page.styles,
            "partial": any(row["n_runs"] != row[f"{method}_n_runs"] for row in page.drawn for method in _METHODS),
            "unit": page.unit,
            "styles": page.styles,
            "positions": order,
            "labels": labels,
            "statistics": statistics(page),
            "rows": sorted(page.drawn, key=lambda row: (row["rate"], order[row["variant"]])),
            "error_classes": [item for item in ERRORS.items() if any(row[_fraction(item[0])] for row in page.drawn)],
            "curve_rates": distributions_section.choices(page.distributions),
            "latency": latency_in(page.unit),
            "interval": lambda row, name: interval_text(row, name, page.unit) if row[f"{name}_ns"] is not None else "",
            "data": script_data(page),
            "specs": {name: specifications[name] for name in charts.SHARED}
            | {
                f"fit-{number}": charts.fit_specification(page.styles, *fits_section.axes(each, page.load_unit))
                for number, each in enumerate(page.fitted)
            },
        }
    )


def _first_statistic(page: ComparisonPage) -> str:
    """What a reader sees first: the median, unless only means of runs were reported."""
    if any(row["p50_ns"] is not None for row in page.drawn) or not page.drawn:
        return "p50"
    return next(iter(statistics(page)))


def statistics(page: ComparisonPage) -> dict[str, str]:
    """Those that any row has."""
    columns = {"summaries": "vegeta_summaries_mean_ns", "raw": "all_raw_data_mean_ns"}
    found = {
        name: text
        for name, text in STATISTICS.items()
        if any(row[columns.get(name, f"{name}_ns")] is not None for row in page.drawn)
        or any(run.get(reported_section.CHARTED.get(name, "")) is not None for run in page.reported.rows)
    }
    return found or STATISTICS


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
        ("Load", f"{' to '.join(dict.fromkeys((*rates[:1], *rates[-1:])))} {page.load_unit}" if rates else ""),
        ("Runs per load and variant", " to ".join(f"{number:,}" for number in sorted({*runs[:1], *runs[-1:]}))),
        ("Requests", f"{sum(run['requests'] or 0 for run in page.selection.counting):,}" if rows else ""),
    ]
    return [(term, text) for term, text in found if text]


def rests_on(page: ComparisonPage) -> str:
    """How many runs the page's figures rest on."""
    selection = page.selection
    if selection.refusals:
        return "No figure is given."
    evidence = Counter(run["evidence"] for run in selection.counting)
    text = f"The figures rest on {counted(len(selection.counting), 'run')}; {len(selection.excluded):,} excluded"
    if reported := evidence["summary"] + evidence["histogram"]:
        text += f"; {counted(reported, 'run has', 'runs have')} only the load generator's report"
    if selection.doubted:
        text += f"; the report of {counted(len(selection.doubted), 'run')} contradicts itself or the requests"
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
    """What the page's script reads; ``charts`` has the rows of each chart."""
    rates = distributions_section.rates(page.distributions)
    fitted = fits_section.script_data(page.fitted, _Naming(page.selection.counting).of_variant, page.load_unit)
    reported = chart_rows.reported(reported_section.chart_rows(page.reported, page.unit), page.styles, "load")
    shown = chart_rows.across_load(
        page.drawn, _errors(page), page.styles, page.unit, page.concluded, means=_means, ok_means=_ok_means
    )
    return {
        "folder": page.comparison.id,
        "unit": page.unit.symbol,
        "variants": chart_rows.variants(page.styles),
        "rates": rates,
        "rate": rates[len(rates) // 2] if rates else None,
        "load_unit": page.load_unit,
        "step": page.step,
        "fits": [{"says": each["says"], "axes": each["axes"]} for each in fitted],
        **conclusions.choices(page.concluded),
        "statistic": _first_statistic(page),
        "statistics": statistics(page),
        # Both means are averages of the same runs: single runs and conclusions have one mean.
        "figures": {name: "mean" if name in SPREADS else name for name in statistics(page)},
        "spreads": SPREADS,
        "charts": {
            **shown,
            **chart_rows.of_runs(page.distributions, page.styles, page.unit),
            **chart_rows.of_conclusions(page.concluded, page.styles, page.unit, page.step),
            "reported": reported,
            "percentiles": chart_rows.reported(reported_section.histogram_rows(page.reported, page.unit), page.styles),
            "fit": [chart_rows.fit(each["line"], each["runs"], page.styles) for each in fitted],
        },
        "logarithmic": chart_rows.logarithmic(shown["latency"], reported),
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


def _means(row: Row) -> chart_rows.Means:
    return {
        "summaries": (row["vegeta_summaries_mean_ns"], row["vegeta_summaries_std_ns"]),
        "raw": (row["all_raw_data_mean_ns"], row["all_raw_data_std_ns"]),
    }


def _ok_means(row: Row) -> chart_rows.Means:
    return {
        "summaries": (row["ok_run_mean_ns"], row["ok_run_std_ns"]),
        "raw": (row["all_raw_data_ok_mean_ns"], row["all_raw_data_ok_std_ns"]),
    }


_MEASURED_IN_STEPS = {
    "all_raw_data_mean_ns": "mean",
    "p50_ns": "median",
    "p90_ns": "p90",
    "p95_ns": "p95",
    "p99_ns": "p99",
}


def _below_resolution(rows: Sequence[Row], labels: Mapping[str, str], load_unit: str) -> list[str]:
    """A sentence for each two variants whose latencies differ by no more than a step of their tool's clock."""
    found = []
    for one, other, names in numbers.indistinguishable(rows, list(_MEASURED_IN_STEPS)):
        step = numbers.resolution_text(max(one["resolution_ns"] or 0, other["resolution_ns"] or 0))
        which = listed([_MEASURED_IN_STEPS[name] for name in names])
        found.append(
            f"At {rate_text(one['rate'])} {load_unit}, {labels[one['variant']]} and {labels[other['variant']]} differ "
            f"in {which} by no more than {step}, the resolution of these latencies: the difference is not significant."
        )
    return found
