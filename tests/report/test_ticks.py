"""Logarithmic axes: round values that are enough to read, the same in pages and in figures."""

import math
from itertools import pairwise

import pytest
from loadstone.report import figure_list, figure_rows, figures, ticks
from report.test_figures import texts

RANGES = [
    (0.8 * 10.0**power, 0.8 * 10.0**power * factor)
    for power in (-6, -1, 0, 3)
    for factor in (1, 1.001, 1.05, 1.3, 1.99, 2.01, 3.75, 9.9, 10.1, 60, 299, 301, 1e5, 3e9)
]


def within(values: list[float], low: float, high: float) -> list[float]:
    return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def test_below_a_decade_there_are_values_above_and_below_one() -> None:
    assert within(ticks.of(0.8, 3), 0.8, 3) == [0.8, 0.9, 1, 1.2, 1.5, 2, 3]
    assert within(ticks.of(0.97, 1.12), 0.97, 1.12) == [1, 1.05, 1.1]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_every_range_has_some_values_in_order_and_none_has_many(low: float, high: float) -> None:
    found = ticks.of(low, high)
    assert all(before < after for before, after in pairwise(found))
    shown = within(found, low, high)
    if high / low > 1.04:
        assert 2 <= len(shown) <= max(11, math.log10(high / low) + 1)
        # The next values lie outside, for axes go on a little beyond what is drawn.
        assert (found[0] <= low * 1.15 and found[-1] >= high / 1.15) or high / low >= 10


def test_pages_name_the_same(made_site, watched) -> None:
    watched.open(made_site.page("good").as_uri())
    theirs = watched.page.evaluate("all => all.map(([low, high]) => loadstone.logTicks(low, high))", RANGES)
    assert theirs == [ticks.of(low, high) for low, high in RANGES]


def shown_on(watched, figure: str, axis: str) -> list[str]:
    """What is written beside an axis."""
    labels = watched.page.locator(f"#{figure} .plot svg g.role-axis-label text")
    return [label.text_content() for label in labels.all() if label.get_attribute("opacity") == axis]


def test_axes_of_ratios_have_labels_on_both_sides_of_one(wide_site, watched) -> None:
    page_file = wide_site.reports / "comparisons/wide.html"
    for width in (1400, 400):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.open("about:blank")
        watched.open(page_file.as_uri())
        low, high = watched.view("effects", "view.scale('x').domain()")
        assert high / low < 10, "less than a decade"
        figures_ = [text for text in shown_on(watched, "effects", "1") if text.replace(".", "").isdigit()]
        above, below = ([text for text in figures_ if (float(text) > 1) is side] for side in (True, False))
        assert len(above) >= 2 and below, figures_
    assert watched.complaints == []
    page = figure_rows.read(page_file)
    (figure,) = (each for each in figure_list.all_figures(page, None) if each.name == "effects-ratio-p50")
    svg = figures._drawn(page, figure, figures.settings({}))[0]
    written = [float(text) for text in texts(svg.encode()) if text.replace(".", "").isdigit()]
    assert {1.0, 1.5, 2.0} <= set(written), written
