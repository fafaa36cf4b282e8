"""What all charts share: their data's names, look, axes, colours and the names at line ends."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import Load

ROWS = alt.NamedData("rows")
LABELS = alt.NamedData("labels")
KNEES = alt.NamedData("knees")
RUNS = alt.NamedData("runs")

HEIGHT = 320
SMALL_HEIGHT = 240
FAR = 3  # times the highest value, and a third of the lowest: an interval that reaches further is cut
SHAPES = ("circle", "square", "triangle-up", "diamond")  # as parts.swatch has them
_DASHES = ([1, 0], [6, 3], [2, 3], [9, 3, 2, 3])

# How tooltips show numbers, by field; all other fields are texts.
_FORMATS = {
    **dict.fromkeys(("count", "failed", "first", "last", "number", "requests", "traces"), ","),
    **dict.fromkeys(("before", "from", "high", "latency", "low", "max", "min", "p50", "time", "to", "value"), ",.4~r"),
    **dict.fromkeys(("load", "x"), ",~r"),
    "runs": "",
    "baseline_runs": "",
    "share": ".7~r",
}

# Colours are the page's CSS variables, so charts follow light, dark and print without being drawn again.
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink-soft)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--grid)",
        "domainColor": "var(--axis)",
        "tickColor": "var(--axis)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 10,
        "labelOverlap": "greedy",
        "labelSeparation": 4,
        "tickCount": 6,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "text": {"fill": "var(--ink)", "fontSize": 12},
    "header": {"labelFontSize": 12},
    "legend": {
        "labelColor": "var(--ink-soft)",
        "titleColor": "var(--ink)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
    },
}


def load_axis(load: Load) -> alt.X:
    """The axis of loads."""
    return alt.X(
        "load:Q",
        title=load.title,
        axis=alt.Axis(format=",~r", values=list(load.rates)),
        scale=alt.Scale(nice=False, zero=False, padding=14),
    )


def log_axis(channel: str) -> dict[str, Any]:
    """What a logarithmic axis has besides its scale: ``params`` of the chart, and the ``axis`` that uses them.

    The axis names round values: at even steps below a factor of 2, then ever fewer digits of a decade. Vega's own
    choice is the lowest digits of each decade, so that an axis from 0.8 to 3 would have nothing above 1.
    """
    low, high = (f"domain('{channel}')[{end}]" for end in (0, 1))
    decade, power, step = (f"{name}_{channel}" for name in ("decade", "power", "step"))
    part = f"(({high} - {low}) / 5)"
    exponent = "pow(10, floor(log({}) / LN10 + 1e-9))"
    params = [
        {"name": decade, "expr": exponent.format(low)},
        {"name": power, "expr": f"{high} > {low} ? {exponent.format(part)} : 1"},
        {
            "name": step,
            "expr": f"{power} * ({part} <= {power} * 1.000001 ? 1"
            f" : {part} <= 2 * {power} ? 2 : {part} <= 5 * {power} ? 5 : 10)",
        },
    ]

    def digits(every: Sequence[float], decades: int) -> str:
        numbers = (f"{digit * 10.0**place:g} * {decade}" for place in range(decades) for digit in every)
        return f"[{', '.join(numbers)}]"

    fine, medium, coarse = digits((1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), 2), digits((1, 2, 5), 4), digits((1,), 16)
    even = f"sequence(ceil({low} / {step} - 1e-6) * {step}, {high} * 1.000001, {step})"
    values = (
        f"{high} <= {low} ? [{low}] : {high} < 2 * {low} ? {even}"
        f" : {high} < 10 * {low} ? {fine} : {high} < 300 * {low} ? {medium} : {coarse}"
    )
    return {"params": params, "axis": {"values": {"expr": values}, "tickCount": 40}}


def parameters(found: Sequence[dict[str, Any]]) -> list[alt.VariableParameter]:
    """Parameters as objects of Altair."""
    return [alt.VariableParameter(**each) for each in found]


def within(low: str, high: str) -> list[dict[str, Any]]:
    """Parameters ``lowest`` and ``highest``: what reaches beyond them is cut or not drawn."""
    return [{"name": "lowest", "expr": low}, {"name": "highest", "expr": high}]


def tooltips(**titles: str | tuple[str, str | None]) -> list[alt.Tooltip]:
    """Tooltips by field: a title, or a title with a format that is not the field's usual one (None: a text)."""
    found = []
    for field, given in titles.items():
        title, number = given if isinstance(given, tuple) else (given, _FORMATS.get(field))
        kind = "N" if number is None else "Q"
        found.append(alt.Tooltip(f"{field}:{kind}", title=title, format=number or alt.Undefined))
    return found


def latency_y(unit: str, field: str = "value") -> alt.Y:
    """An axis of latencies."""
    return alt.Y(f"{field}:Q", title=f"Latency ({unit})", axis=alt.Axis(format=",.4~r"))


def colour(styles: Sequence[Style]) -> alt.Color:
    """The variants' colours."""
    names = [style.name for style in styles]
    # The page's script defines --variant-0, --variant-1, ... for light and dark.
    colours = [f"var(--variant-{position})" for position in range(len(styles))]
    return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colours), legend=None)


def dashes(styles: Sequence[Style]) -> dict[str, Any]:
    """Dash patterns of lines, where there are more variants than colours; else nothing."""
    return _patterns(styles, "strokeDash", alt.StrokeDash, _DASHES)


def shapes(styles: Sequence[Style]) -> dict[str, Any]:
    """The shapes of points in the same case."""
    return _patterns(styles, "shape", alt.Shape, SHAPES)


def _patterns(styles: Sequence[Style], name: str, channel: Any, kinds: Sequence[Any]) -> dict[str, Any]:
    if not any(style.pattern for style in styles):
        return {}
    names = [style.name for style in styles]
    scale = alt.Scale(domain=names, range=[kinds[style.pattern % len(kinds)] for style in styles])
    return {name: channel("variant:N", scale=scale, legend=None)}


def direct_labels(styles: Sequence[Style]) -> list[alt.Chart]:
    """A dot and the variant's name at the right edge; the page's script moves names apart that would overlap."""
    place = alt.Chart(LABELS).encode(y=alt.Y("y:Q", scale=None, title=None))
    dots = place.mark_point(filled=True, size=46, opacity=1, xOffset=10, clip=False).encode(
        x=alt.value("width"), color=colour(styles), **shapes(styles)
    )
    names = place.mark_text(align="left", baseline="middle", dx=18, limit=150).encode(
        x=alt.value("width"), text="label:N"
    )
    return [dots, names]


def layered(*layers: alt.Chart, height: int, x: str, y: str, data: alt.NamedData | None = None) -> alt.LayerChart:
    """One chart of several layers; `x` and `y` are what its axes show (see `loadstone.report.charts`).

    `data` is that of layers without their own.
    """
    chart = alt.LayerChart(layer=layers, data=alt.Undefined if data is None else data)
    return chart.properties(width="container", height=height, usermeta=axes(x, y))


def axes(x: str, y: str) -> dict[str, Any]:
    """The ``usermeta`` of a chart with these axes."""
    return {"axes": {"x": x, "y": y}}


def plain(chart: alt.Chart | alt.LayerChart | alt.FacetChart) -> dict[str, Any]:
    """The specification without what only Altair's own pages need.

    It is not checked against the schema, a third of the time that charts take: tests check every one.
    """
    content = chart.to_dict(validate=False)
    return {key: value for key, value in content.items() if key not in ("config", "$schema")}
