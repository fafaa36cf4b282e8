"""Logarithmic axes: round values that are enough to read, the same in pages and in figures."""

import math
import re
from itertools import pairwise

import pytest
import vl_convert
from loadstone.report import figure_drawing, figures
from loadstone.report.charts.base import log_axis
from report.test_figures import texts

RANGES = [
    (0.8 * 10.0**power, 0.8 * 10.0**power * factor)
    for power in (-6, -1, 0, 3)
    for factor in (1, 1.001, 1.05, 1.3, 1.99, 2.01, 3.75, 9.9, 10.1, 60, 299, 301, 1e5, 3e9)
]


def named(low: float, high: float) -> list[float]:
    """What the axis of a chart with values from low to high names."""
    ticks = log_axis("x")
    x = {"field": "x", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 10}}
    x |= {"axis": {"format": "~e", **ticks["axis"]}}
    spec = {"width": 800, "params": ticks["params"], "mark": "point", "encoding": {"x": x}}
    svg = vl_convert.vegalite_to_svg(spec | {"data": {"values": [{"x": low}, {"x": high}]}})
    return [float(text) for text in re.findall(r">([0-9.]+e[+-][0-9]+)<", svg)]


def test_below_a_decade_there_are_values_above_and_below_one() -> None:
    assert named(0.8, 3) == [0.8, 0.9, 1, 1.2, 1.5, 2, 3]
    assert named(0.97, 1.12) == pytest.approx([1, 1.05, 1.1])


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_every_range_has_some_values_in_order_and_none_has_many(low: float, high: float) -> None:
    shown = named(low, high)
    assert all(before < after for before, after in pairwise(shown))
    if high / low > 1.04:
        assert 2 <= len(shown) <= max(11, math.log10(high / low) + 1)
        # Beyond the first and the last there is no room for another.
        assert (shown[0] <= low * 1.2 and shown[-1] >= high / 1.2) or high / low >= 2


def shown_on(watched, figure: str, axis: str) -> list[str]:
    """What is written beside an axis."""
    labels = watched.page.locator(f"#{figure} .plot svg g.role-axis-label text")
    return [label.text_content() for label in labels.all() if label.get_attribute("opacity") == axis]


@pytest.mark.long
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
    page = figures.read(page_file)
    (figure,) = (each for each in figures.all_figures(page, None) if each.name == "effects-ratio-p50")
    svg = dict(figure_drawing.draw(figure, page.specs, page.data["variants"], figure_drawing.settings({})))["svg"]
    written = [float(text) for text in texts(svg) if text.replace(".", "").isdigit()]
    assert {1.0, 1.5, 2.0} <= set(written), written
