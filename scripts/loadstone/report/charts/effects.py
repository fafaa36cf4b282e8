"""Charts of differences: a row per load and variant, a point with its interval."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import Load
from loadstone.report.charts.base import (
    FAR,
    ROWS,
    SMALL_HEIGHT,
    colour,
    layered,
    log_axis,
    parameters,
    tooltips,
    within,
)

# The key of a row ends with its name as it is shown, in one line or two.
_NAME = "split(slice(datum.value, indexof(datum.value, ':') + 1), '\\n')"
_SHAPES = {
    "slower": "triangle-right",
    "faster": "triangle-left",
    "more": "triangle-right",
    "fewer": "triangle-left",
    "equivalent": "square",
    "inconclusive": "circle",
}

# Of labels that would overlap, the baseline's stays.
_BASELINE_NAMED = "datum.value !== 1 && abs(scale('x', datum.value) - scale('x', 1)) < 24 ? '' : datum.label"

_SCALED = "extent(pluck(data('rows'), isValid(extent(pluck(data('rows'), 'scaled'))[0]) ? 'scaled' : 'value'))"
_FARTHEST = f"max(abs({_SCALED}[0]), abs({_SCALED}[1]))"
_AROUND_ZERO = within(f"-{FAR} * {_FARTHEST}", f"{FAR} * {_FARTHEST}")


def ratio_to_baseline(styles: Sequence[Style], load: Load) -> alt.LayerChart:
    """A forest plot of ratios to the baseline, with the margin as a band; points are hollow if inconclusive.

    Rows, in order of load: variant, label, load, baseline, value, low, high, scaled (the value, null where the
    axis need not show it), interval, margin_low, margin_high, verdict, shown (the verdict as text), why, needs, p.
    """
    ticks = log_axis("x")
    x = alt.X(
        "point:Q",
        title="Ratio to the baseline (above 1: slower)",
        scale=alt.Scale(type="log", nice=False, padding=10),
        axis=alt.Axis(format=",.3~r", grid=True, labelExpr=_BASELINE_NAMED, **ticks["axis"]),
    )
    limits = within(f"min({_SCALED}[0], 1) / {FAR}", f"max({_SCALED}[1], 1) * {FAR}")
    return _to_baseline(styles, load, x, 1.0, params=[*ticks["params"], *limits])


def shift_to_baseline(styles: Sequence[Style], load: Load, unit: str) -> alt.LayerChart:
    """The same of shifts, in the page's unit."""
    x = _added(f"Latency minus the baseline's ({unit})")
    return _to_baseline(styles, load, x, 0.0, params=_AROUND_ZERO)


def errors_to_baseline(styles: Sequence[Style], load: Load) -> alt.LayerChart:
    """The same of shares of failed requests, in percentage points. These have no margin."""
    x = _added("Failed requests added (% points)")
    return _to_baseline(styles, load, x, 0.0, params=within("-MAX_VALUE", "MAX_VALUE"), banded=False)


def added_by_layers(styles: Sequence[Style], load: Load, unit: str) -> alt.LayerChart:
    """What each variant adds to the one that it is built upon; hollow where it is not significant.

    Rows, in order of load: variant, label (of the step), name (the same in two lines), load, value, low, high, scaled,
    interval, shown, warning, sure.
    """
    title = f"Latency added ({unit})"
    tooltip = tooltips(label="Step", load=load.title, value=title, interval="Interval", warning="Warning")
    return _rows(styles, load, _added(title), 0.0, tooltip=tooltip, hollow="!datum.sure", params=_AROUND_ZERO)


def dumbbells(styles: Sequence[Style], load: Load, unit: str) -> alt.LayerChart:
    """A dumbbell plot of figures without intervals: the baseline's latency (grey), the variant's, and a line between.

    Rows, in order of load: variant, label, load, baseline, before (the baseline's latency), value, shown (the
    difference as text), runs, baseline_runs.
    """
    title = f"Latency ({unit})"
    base = alt.Chart().encode(y=_place(load))
    axis = alt.Axis(format=",.4~r", grid=True)
    before, value = (alt.X(f"{name}:Q", title=title, axis=axis) for name in ("before", "value"))
    tooltip = tooltips(
        label="Variant",
        load=load.title,
        value=title,
        baseline="Baseline",
        before=f"Latency of the baseline ({unit})",
        shown="Difference",
        runs="Runs",
        baseline_runs="Runs of the baseline",
    )
    dot: dict[str, Any] = {"filled": True, "size": 80, "opacity": 1, "tooltip": True}
    chart = layered(
        _between(load),
        base.mark_rule(strokeWidth=2.2).encode(x=before, x2="value:Q", color=colour(styles)),
        base.mark_point(**dot, color="var(--axis)").encode(x=before, tooltip=tooltip),
        base.mark_point(**dot).encode(x=value, color=colour(styles), tooltip=tooltip),
        base.mark_text(align="left", baseline="middle", dx=10).encode(x=alt.value("width"), text="shown:N"),
        height=SMALL_HEIGHT,
        x="latency",
        y="fixed",
        data=ROWS,
    )
    chart = _keyed(chart)
    return chart.properties(usermeta={"axes": {"x": "latency", "y": "fixed"}, "rows": True})


def _added(title: str) -> alt.X:
    return alt.X(
        "point:Q",
        title=title,
        scale=alt.Scale(nice=False, zero=False, padding=10),
        axis=alt.Axis(format=",.4~r", grid=True),
    )


def _to_baseline(
    styles: Sequence[Style],
    load: Load,
    x: alt.X,
    no_difference: float,
    *,
    params: list[dict[str, Any]],
    banded: bool = True,
) -> alt.LayerChart:
    band = (
        alt.Chart()
        .mark_rect(fill="var(--shade)", opacity=1)
        .encode(x=alt.X("margin_low:Q", title=x["title"]), x2="margin_high:Q", y=_place(load))
    )
    tooltip = tooltips(
        label="Variant",
        baseline="Baseline",
        load=load.title,
        value=x["title"],
        interval="Interval",
        shown="Verdict",
        why="Why",
        needs="Runs needed",
        p="p, adjusted",
    )
    hollow = "datum.verdict == 'inconclusive'"
    return _rows(
        styles,
        load,
        x,
        no_difference,
        params=params,
        tooltip=tooltip,
        hollow=hollow,
        below=[band] if banded else [],
        shaped=True,
    )


def _place(load: Load, *, above: bool = False) -> alt.Y:
    """The axis of rows: a mark is in a row, or `above` it."""
    axis = alt.Axis(
        labelExpr=_NAME,
        labelLimit=420,
        labelColor="var(--ink)",
        labelOverlap=False,
        labelOffset={"expr": f"-6.5 * (length({_NAME}) - 1)"},
        grid=False,
        # Above the names: next to them, it would cover long ones.
        titleAngle=0,
        titleAlign="right",
        titleAnchor="end",
        titleX=-6,
        titleY=-14,
    )
    place = alt.Y("key:N", sort=None, title=load.unit, scale=alt.Scale(padding=0), axis=axis)
    return place.bandPosition(0) if above else place


def _between(load: Load) -> alt.Chart:
    """A line above the first row of each load."""
    opacity = alt.condition("datum.first", alt.value(1), alt.value(0))
    line: alt.Chart = alt.Chart().mark_rule(stroke="var(--grid)").encode(y=_place(load, above=True), opacity=opacity)
    return line


def _keyed(chart: alt.LayerChart) -> alt.LayerChart:
    """Rows with what `_place` shows: the load, where it is the first of that load, and the name."""
    return chart.transform_window(place="row_number()", last_load="lag(load)").transform_calculate(
        first="datum.last_load !== datum.load",
        key="datum.place + ':' + (datum.first ? format(datum.load, ',~r') + ' · ' : '')"
        " + (isValid(datum.name) ? datum.name : datum.label)",
    )


def _rows(
    styles: Sequence[Style],
    load: Load,
    x: alt.X,
    no_difference: float,
    *,
    params: list[dict[str, Any]],
    tooltip: list[alt.Tooltip],
    hollow: str,
    below: Sequence[alt.Chart] = (),
    shaped: bool = False,
) -> alt.LayerChart:
    base = alt.Chart().encode(y=_place(load))
    # Every layer has all rows, so that they keep their order; values that a row does not have are not drawn.
    # Drawn once and not once per row. Inline data would not work: the page's script replaces it.
    reference = alt.Chart().transform_aggregate(n="count()").mark_rule(stroke="var(--ink-soft)", strokeDash=[3, 3])
    interval = base.mark_rule(strokeWidth=2.2).encode(
        x=alt.X("start:Q", title=x["title"]), x2="end:Q", color=colour(styles)
    )
    fill = alt.Fill("variant:N", scale=colour(styles)["scale"], legend=None)
    arrows = [
        base.mark_point(shape=f"triangle-{side}", filled=True, size=60, opacity=1).encode(
            x=alt.X(f"cut_{end}:Q", title=x["title"]), color=colour(styles)
        )
        for end, side in (("low", "left"), ("high", "right"))
    ]
    points = base.mark_point(opacity=1, strokeWidth=1.8).encode(
        x=x,
        size=alt.condition("isValid(datum.start)", alt.value(46), alt.value(26)),
        stroke=alt.Stroke("variant:N", scale=colour(styles)["scale"], legend=None),
        fill=alt.condition(hollow, alt.value("var(--paper)"), fill),
        tooltip=tooltip,
    )
    if shaped:
        scale = alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values()))
        points = points.encode(shape=alt.Shape("verdict:N", scale=scale, legend=None))
    verdicts = base.mark_text(align="left", baseline="middle", dx=10).encode(x=alt.value("width"), text="shown:N")
    chart = layered(
        *below,
        _between(load),
        reference.encode(x=alt.datum(no_difference, title=x["title"])),
        interval,
        *arrows,
        points,
        verdicts,
        height=SMALL_HEIGHT,
        x="fixed",
        y="fixed",
        data=ROWS,
    )
    chart = _keyed(chart).transform_calculate(
        point="isValid(datum.value) && datum.value >= lowest && datum.value <= highest ? datum.value : null",
    )
    for end, drawn, cut in (("low", "start", "max(datum.low, lowest)"), ("high", "end", "min(datum.high, highest)")):
        both = "isValid(datum.point) && isValid(datum.low)"
        chart = chart.transform_calculate(
            **{drawn: f"{both} ? {cut} : null", f"cut_{end}": f"datum.{drawn} === datum.{end} ? null : datum.{drawn}"}
        )
    return chart.properties(params=parameters(params), usermeta={"axes": {"x": "fixed", "y": "fixed"}, "rows": True})
