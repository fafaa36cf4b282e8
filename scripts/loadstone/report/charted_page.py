"""What the pages of campaigns and of comparisons share: conclusions, reports of tools, and the charts over both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadstone import __version__
from loadstone.config.variants import Style
from loadstone.percentiles import LATENCIES, SHOWN_PERCENTILES, label, title
from loadstone.report import chart_rows, charts, conclusions, numbers, reported_section
from loadstone.report.conclusions import Conclusions
from loadstone.report.numbers import Unit, interval_text, latency_text, rate_name, spread_text
from loadstone.report.queries import Distributions, Row
from loadstone.report.reported_section import Reported
from loadstone.stats import requests_needed
from loadstone.text import load_unit, rate_text


@dataclass(frozen=True)
class ChartedPage:
    """A page with charts across load. `runs` are those that it is about, `styles` those of its series.

    `sections` has variables of the template that depend on nothing else here.
    """

    unit: Unit
    styles: list[Style]
    rates: list[float]
    runs: list[Row]
    reported: Reported
    concluded: Conclusions
    distributions: Distributions
    sections: Mapping[str, Any]

    @cached_property
    def labels(self) -> dict[str, str]:
        """By series, in the order of charts and tables."""
        return {style.name: style.label for style in self.styles}

    @cached_property
    def positions(self) -> dict[str, int]:
        """The place of each series in that order."""
        return {name: place for place, name in enumerate(self.labels)}

    @property
    def step(self) -> list[float] | None:
        """The smallest resolution of all latencies, and its decimals, if all are coarse."""
        return numbers.coarse_step(self.runs, self.unit)

    @property
    def load_unit(self) -> str:
        """What a load counts: requests/s or users."""
        return load_unit(run["load_model"] for run in self.runs)

    def specifications(self) -> dict[str, Any]:
        """The specification of every chart that such a page may have."""
        return charts.specifications(self.styles, self.unit, charts.Load(tuple(self.rates), self.load_unit))

    def shared_context(
        self, others: Iterable[tuple[str, str]], figures: Sequence[Row], *, campaigns: bool = False
    ) -> dict[str, Any]:
        """Variables that both templates have; `campaigns`: the page is about several.

        `others` are caveats that no table has: a text of one line, and the anchor of its details. `figures` are rows
        of `cells` or `comparisons`.
        """
        concluded = conclusions.context(self.concluded, self.styles, self.unit, self.step, figures)
        return {
            **self.sections,
            **concluded,
            "caveats": conclusions.caveats_in_brief(
                concluded["claims"], others, concluded["matrix"].get("caveats", {})
            ),
            **reported_section.context(self.reported, self.labels, self.unit, campaigns=campaigns),
            "percentiles": {name: label(name) for name in SHOWN_PERCENTILES},
            "unit": self.unit,
            "styles": self.styles,
            "labels": self.labels,
            "positions": self.positions,
            "load_unit": self.load_unit,
            "reported_chart": reported_section.has_loads(self.reported),
            "curve_rates": [(rate_name(rate), rate_text(rate)) for rate in self.distributions.rates],
            "latency": lambda latency_ns, resolution_ns=None: latency_text(latency_ns, self.unit, resolution_ns),
            "spread": lambda row, name: spread_text(row[name], self.unit, row["resolution_ns"]),
            "interval": lambda row, name: interval_text(row, name, self.unit),
        }

    def answer(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """From the variables of the template: for the script the matrix of verdicts, for the summary what it says.

        The page opens on the statistic that the headline is about.
        """
        matrix, headline, data = context["matrix"], context["headline"], context["data"]
        lettered = matrix.get("caveats", {})
        about = (name for name, figure in data["figures"].items() if matrix and figure == matrix["shown"])
        said = {
            "title": context["title"],
            "brief": context.get("in_brief") or context["lead"],
            "headline": headline.sentence if headline else "",
            "runs": context["runs_used"],
            "caveats": [
                f"{conclusions.letter_of(kind, lettered)} {kind['heading']}: {kind['texts'][0]}".strip()
                for group in context["claims"]
                for kind in group["kinds"]
            ],
            "made_by": f"Made by Loadstone {__version__}",
            "matrix": {
                "caption": f"{label(matrix['shown'])} relative to {', '.join(matrix['baselines'])}"
                + (f", with {context['verdict_confidence']} intervals" if matrix["has_intervals"] else "")
                + f", by load in {self.load_unit}",
                "rates": matrix["rates"],
                "variants": [self.labels[name] for name in matrix["variants"]],
                "shown": matrix["shown"],
            }
            if matrix
            else {},
        }
        return {
            "statistic": next(about, data["statistic"]),
            "matrix": matrix.get("cells", {}),
            "baselines": matrix.get("baselines", []),
            "baseline_cells": matrix.get("baseline_cells", {}),
            "why_inconclusive": matrix.get("why_inconclusive", {}),
            "symbols": context["symbols"],
            "sheet": said,
        }

    def shared_data(self, folder: str, rates: list[float], across_load: Mapping[str, Any]) -> dict[str, Any]:
        """What both pages' scripts read; ``charts`` has the rows of each chart.

        `folder` is that of the page's data, `rates` are those that its reader chooses among, `across_load` is what
        `chart_rows.across_load` gives.
        """
        names = list(map(rate_name, rates))
        reported = chart_rows.reported(reported_section.chart_rows(self.reported, self.unit), self.styles, "load")
        return {
            "folder": folder,
            "unit": self.unit.symbol,
            "unit_ns": self.unit.length_ns,
            "step": self.step,
            "load_unit": self.load_unit,
            "variants": chart_rows.variants(self.styles),
            "rates": names,
            "rate": names[len(names) // 2] if names else None,
            "titles": {name: title(name).lower() for name in LATENCIES},
            "needs": {name: requests_needed(share) for name, share in SHOWN_PERCENTILES.items()},
            **conclusions.choices(self.concluded),
            "findings": conclusions.titles(self.concluded, self.styles, self.unit, self.step),
            "charts": {
                **across_load,
                **chart_rows.of_runs(self.distributions, self.styles, self.unit),
                **chart_rows.of_conclusions(self.concluded, self.styles, self.unit, self.step),
                "reported": reported,
                "percentiles": chart_rows.reported(
                    reported_section.histogram_rows(self.reported, self.unit), self.styles
                ),
            },
            "logarithmic": chart_rows.logarithmic(across_load["latency"], reported),
        }
