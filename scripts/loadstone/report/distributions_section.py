"""Distributions of latency over all requests, of single runs and of the time within runs: what pages ask the tables."""

from collections.abc import Callable
from dataclasses import dataclass

from loadstone.report.numbers import rate_name
from loadstone.report.queries import Questions, Row
from loadstone.text import rate_text


@dataclass(frozen=True)
class Distributions:
    """Rows of the tables `time_bins`, `percentile_curves` and `run_figures`; ``variant`` names the series."""

    bins: list[Row]
    curves: list[Row]
    runs: list[Row]

    @property
    def rates(self) -> list[float]:
        """Loads at which there is a distribution."""
        return sorted({row["rate"] for row in self.curves})


def gather(
    questions: Questions,
    comparison: str | None = None,
    *,
    counts: Callable[[Row], bool] = lambda _: True,
    named: Callable[[Row], Row] = lambda row: row,
) -> Distributions:
    """Ask the tables; `counts` says of a run whether the page rests on it, `named` gives a row its series' name."""
    return Distributions(
        bins=[named(row) for row in questions.of_scope("time_bins", comparison)],
        curves=[named(row) for row in questions.of_scope("percentile_curves", comparison)],
        runs=[named(row) for row in questions.rows("page_run_figures") if counts(row)],
    )


def rates(found: Distributions) -> list[str]:
    """Loads of the percentile curves, as the page's script names them."""
    return [rate_name(rate) for rate in found.rates]


def choices(found: Distributions) -> list[tuple[str, str]]:
    """The same as a reader chooses among them."""
    return [(rate_name(rate), rate_text(rate)) for rate in found.rates]
